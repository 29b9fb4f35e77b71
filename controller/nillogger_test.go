// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
)

func TestARecorderWithoutALoggerUsesTheDefaultOne(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://in-memory"})
	if err != nil {
		t.Fatal(err)
	}
	controller.NewRecorder(c, "web", "host-1", nil) // it used to panic
}
