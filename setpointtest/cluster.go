// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
)

// Variable is the environment variable that names the kubeconfig of a cluster which the
// tests use instead of one of their own. Tests create and delete in it, as administrator.
const Variable = "SETPOINT_TEST_KUBECONFIG"

// Environment is a cluster for tests. Its methods are safe for concurrent use.
type Environment struct {
	// Config connects as administrator. It must not be changed, but copied.
	Config *rest.Config

	// Kubeconfig is the path of a file that says the same.
	Kubeconfig string

	// Client is made of Config.
	Client *client.Client
}

// shared is the cluster of all tests of the process.
var shared struct {
	sync.Mutex
	cluster *Environment
	err     error
}

// Cluster returns the cluster of all tests of this process, which it starts if it is the
// first: "setpoint up" with its defaults, so with three nodes and all controllers. With
// [Variable] it is the cluster of that kubeconfig. The test fails if there is none, and is
// skipped with -short.
func Cluster(t testing.TB) *Environment {
	t.Helper()
	skipShort(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = first(context.WithoutCancel(t.Context())) // it outlives the test
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

func first(ctx context.Context) (*Environment, error) {
	if kubeconfig := os.Getenv(Variable); kubeconfig != "" {
		e, err := connect(kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("connecting to the cluster of $%s: %w", Variable, err)
		}
		return e, nil
	}
	u, err := startUp(ctx, nil)
	if err != nil {
		return nil, err
	}
	return connect(u.kubeconfig)
}

// Own starts a cluster for one test, with flags of "setpoint up" such as "--nodes=10", and
// stops it when the test ends. The test is skipped with -short.
func Own(t testing.TB, flags ...string) *Environment {
	t.Helper()
	skipShort(t)
	u, err := startUp(t.Context(), flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the cluster said:\n%s", u.said())
		}
		if err := u.log.Close(); err != nil {
			t.Error(err)
		}
	})
	e, err := connect(u.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a cluster, which -short leaves out")
	}
}

func connect(kubeconfig string) (*Environment, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	config.QPS = -1 // for tests that use client-go's clients
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	return &Environment{Config: config, Kubeconfig: kubeconfig, Client: c}, nil
}
