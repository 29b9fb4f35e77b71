// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// program is the whole program, which reads $KUBECONFIG itself.
type program func(context.Context) error

func (p program) Run(ctx context.Context) error { return p(ctx) }

func TestTheProgram(t *testing.T) {
	setpointtest.Run(t, program(run))

	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	key := object.Key{Namespace: "default", Name: "note"}
	if _, err := client.For[*corev1.ConfigMap](c).Create(t.Context(), note(key, "1s")); err != nil {
		t.Fatal(err)
	}
	setpointtest.AwaitGone[*corev1.ConfigMap](t, c, key)
}
