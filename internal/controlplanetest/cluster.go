// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/child"
)

// startTimeout bounds a start, on a machine that is busy with other tests as well.
const startTimeout = 2 * time.Minute

// Options configure the control plane to start. The zero value is one API server without
// nodes. Services that request IPv6 addresses get them.
type Options struct {
	// Nodes is how many nodes are simulated.
	Nodes int

	// Servers is how many API servers share the etcd; 0 is one.
	Servers int

	// FeatureGates are passed on to Kubernetes.
	FeatureGates map[string]bool

	// RuntimeConfig is passed on to kube-apiserver: which versions of APIs it serves.
	RuntimeConfig map[string]string

	// Restartable keeps the data in a directory and the ports fixed, for
	// Cluster.Restart. Such a cluster writes with fsync, and so is slower.
	Restartable bool

	// Bare leaves nodes tainted and namespaces without their default ServiceAccount, for
	// tests of the controllers that remove the one and create the other.
	Bare bool
}

// Cluster is a control plane for tests. Its methods are safe for concurrent use.
type Cluster struct {
	// Config connects as administrator, also after a restart. Callers copy it before they
	// change it.
	Config *rest.Config

	// Kubeconfig is the path of a kubeconfig file for the same access.
	Kubeconfig string

	// Client uses Config.
	Client *client.Client

	options Options
	run     child.Options
	dir     string // holds Kubeconfig, and the data of a restartable cluster

	mu        sync.Mutex
	process   *child.Process // the latest; after Kill it has ended. Nil if it is borrowed
	endpoints child.Endpoints
	pid       int
}

// Start starts a control plane for one test and stops it when the test ends.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	need(t)
	dir := t.TempDir()
	c, err := start(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func start(ctx context.Context, dir string, o Options) (*Cluster, error) {
	path, err := Binary(child.Binary)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		options:    o,
		dir:        dir,
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		run: child.Options{
			Path:         path,
			Nodes:        o.Nodes,
			Servers:      max(o.Servers, 1),
			DualStack:    true,
			FeatureGates: o.FeatureGates, RuntimeConfig: o.RuntimeConfig,
		},
	}
	if o.Restartable {
		c.run.DataDir = filepath.Join(dir, "data")
		if c.run.Port, err = freePorts(ctx, c.run.Servers); err != nil {
			return nil, err
		}
	}
	if err := c.launch(ctx); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// prepare connects to a control plane that runs, and removes the taints of its nodes.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := c.connect(); err != nil || c.options.Bare {
		return err
	}
	return c.untaint(ctx)
}

func (c *Cluster) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	process, err := child.Start(ctx, c.run)
	if err != nil {
		return err
	}
	c.process, c.endpoints, c.pid = process, process.Endpoints(), process.Pid()
	return nil
}

// connect copies the kubeconfig. The control plane removes its own when it stops, and a client
// that reads it again must not fail meanwhile.
func (c *Cluster) connect() error {
	text, err := os.ReadFile(c.endpoints.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	if err := os.WriteFile(c.Kubeconfig, text, 0o600); err != nil { //nolint:gosec // the path is one that this package made
		return fmt.Errorf("copying the kubeconfig of the control plane: %w", err)
	}
	if c.Config, err = clientcmd.RESTConfigFromKubeConfig(text); err != nil {
		return fmt.Errorf("understanding the kubeconfig of the control plane: %w", err)
	}
	c.Config.QPS = -1 // for tests that use client-go's clients
	if c.Client, err = client.New(c.Config); err != nil {
		return err
	}
	return nil
}

// Servers returns the URLs of the API servers.
func (c *Cluster) Servers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints.Servers
}

// Endpoints says where the control plane has what a controller manager needs: its
// authority, and the keys.
func (c *Cluster) Endpoints() child.Endpoints {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints
}

// Pid is the process id of the control plane.
func (c *Cluster) Pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// Kill ends the control plane by SIGKILL, without any clean-up, as a crash does. A test may
// kill only a control plane of its own, from Start.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// Restart starts the control plane again after Kill, with the same data at the
// same address, and returns when it is ready. Only a Restartable one can.
func (c *Cluster) Restart(ctx context.Context) error {
	if !c.options.Restartable {
		return errors.New("restarting the control plane: it was not started with Options.Restartable")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.launch(ctx)
}

func (c *Cluster) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process.Stop()
}
