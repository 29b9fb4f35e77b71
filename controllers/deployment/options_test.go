// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
)

func TestFewerThanNoWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New = %v, want an error that says -1 workers", err)
	}
}
