// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// deadline is for what takes seconds at most; it only ends tests that hang.
const deadline = 4 * time.Minute

// shared is one control plane with two API servers, for all tests that leave
// it as they found it. It is started by the first test that asks.
var shared = sync.OnceValues(func() (*ControlPlane, error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	return Start(ctx, Options{APIServers: 2})
})

var sharedUsed bool

func TestMain(m *testing.M) {
	// A component of Kubernetes that sees no way on ends the process, after a line for a log that may be gone.
	klog.OsExit = func(code int) {
		fmt.Fprintf(os.Stderr, "a Kubernetes component ended the process of the tests with code %d:\n%s", code, debug.Stack())
		os.Exit(code)
	}
	status := m.Run()
	if sharedUsed {
		if cp, err := shared(); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			if err := cp.Stop(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "stopping the shared control plane:", err)
				status = 1
			}
		}
	}
	removeBuiltBinary()
	os.Exit(status)
}

func sharedControlPlane(t *testing.T) *ControlPlane {
	t.Helper()
	sharedUsed = true
	cp, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return cp
}

// startForTest starts a control plane that ends with the test.
func startForTest(t *testing.T, opts Options) *ControlPlane {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cp, err := Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopForTest(t, cp) })
	return cp
}

func stopForTest(t *testing.T, cp *ControlPlane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), deadline)
	defer cancel()
	if err := cp.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// client returns a client whose connections end with the test.
func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return clientWith(t, config, h)
}

func clientWith(t *testing.T, config *rest.Config, h *http.Client) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfigAndClient(config, h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until f returns nil.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	end := time.Now().Add(deadline)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %v", deadline, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
