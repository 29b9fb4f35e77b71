// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// TestMain does what the line in the Makefile does, where the tests run without it: "setpoint assets"
// prints the directory.
func TestMain(m *testing.M) {
	if setpoint := os.Getenv("SETPOINT_BIN"); setpoint != "" && os.Getenv("KUBEBUILDER_ASSETS") == "" {
		out, err := exec.CommandContext(context.Background(), setpoint, "assets").Output() //nolint:gosec // it is the binary under test
		if err == nil {
			err = os.Setenv("KUBEBUILDER_ASSETS", strings.TrimSpace(string(out)))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "setpoint assets:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestANamespaceGetsTheQuotaOfItsLabel(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	env := new(envtest.Environment)
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	runManager(t, config)
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{podsLabel: "10"}}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	awaitPods(t, c, 10)
	before := namespace.DeepCopy()
	namespace.Labels[podsLabel] = "20"
	if err := c.Patch(t.Context(), namespace, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	awaitPods(t, c, 20)
}

// runManager runs the manager until the test ends.
func runManager(t *testing.T, config *rest.Config) {
	t.Helper()
	skip := true // the test may run more than once in a process
	mgr, err := newManager(config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// awaitPods waits until team-a may have so many Pods.
func awaitPods(t *testing.T, c client.Client, want int64) {
	t.Helper()
	setpointtest.Eventually(t, fmt.Sprintf("team-a may have %d Pods", want), func() error {
		var quota corev1.ResourceQuota
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "pods"}, &quota); err != nil {
			return err
		}
		if got := quota.Spec.Hard.Pods().Value(); got != want {
			return fmt.Errorf("it may have %d", got)
		}
		return nil
	})
}

// BenchmarkEnvironment starts and stops the servers of envtest, those that KUBEBUILDER_ASSETS names.
func BenchmarkEnvironment(b *testing.B) {
	for range b.N {
		env := new(envtest.Environment)
		if _, err := env.Start(); err != nil {
			b.Fatal(err)
		}
		if err := env.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}
