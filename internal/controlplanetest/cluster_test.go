// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.SharedCluster

func TestPodsRunWithoutAnyController(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	for _, args := range [][]string{
		{"run", "web", "--image=nginx", "-n", namespace},
		{"wait", "--for=condition=Ready", "pod/web", "--timeout=60s", "-n", namespace},
	} {
		if _, err := cluster.Kubectl(args...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKilledControlPlaneComesBackWithItsDataAtItsAddress(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplanetest.Options{Restartable: true, Servers: 2})
	namespace := cluster.Namespace(t)
	servers := cluster.Servers()
	cluster.Kill(t)
	namespaces := client.For[*corev1.Namespace](cluster.Client)
	// The first request may fail: the connection to the old process breaks under it.
	controlplanetest.Eventually(t, "the killed server cannot be reached", func() bool {
		_, err := namespaces.Get(t.Context(), object.Key{Name: namespace})
		if err == nil {
			t.Fatal("a killed server answered")
		}
		return client.Unreachable(err)
	})
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := cluster.Servers(); now[0] != servers[0] || now[1] != servers[1] {
		t.Errorf("came back at %s, was at %s", now, servers)
	}
	if _, err := namespaces.Get(t.Context(), object.Key{Name: namespace}); err != nil {
		t.Error(err)
	}
}
