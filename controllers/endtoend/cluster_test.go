// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 3}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// patience is how long a test waits for something that takes milliseconds on an
// idle machine.
const patience = time.Minute

// cluster is what a test has: a namespace, and a manager that runs for as long as
// the test.
type cluster struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	c.manage()
	return c
}

// manage runs the controllers until the test ends.
func (c *cluster) manage() {
	c.t.Helper()
	c.run(c.Config, replicaSets, deployments)
}

func replicaSets(mgr *manager.Manager) (manager.Runnable, error) {
	return replicaset.New(mgr, replicaset.Defaults())
}

func deployments(mgr *manager.Manager) (manager.Runnable, error) {
	return deployment.New(mgr, deployment.Defaults())
}

// run runs controllers with the credentials of config until the test ends.
func (c *cluster) run(config *rest.Config, parts ...managertest.Make) *managertest.Process {
	c.t.Helper()
	return managertest.Run(c.t, config, parts...)
}

// beside is the same cluster in another namespace.
func (c *cluster) beside() *cluster {
	c.t.Helper()
	return &cluster{Cluster: c.Cluster, t: c.t, namespace: c.Namespace(c.t)}
}

// kubectl runs a command in the namespace as a user would, and fails the test if
// it fails.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// try is kubectl for what may fail.
func (c *cluster) try(args ...string) (string, error) {
	return c.Kubectl(append([]string{"--namespace", c.namespace}, args...)...)
}

// rolledOut waits until kubectl says that a rollout is over.
func (c *cluster) rolledOut(name string) {
	c.t.Helper()
	c.kubectl("rollout", "status", "deployment/"+name, "--timeout", patience.String())
}

// eventually waits until f returns "". What it returns before says what is
// missing.
func (c *cluster) eventually(f func() string) {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		missing := f()
		if missing == "" {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			c.t.Fatalf("after %s: %s", patience, missing)
		}
	}
}

func (c *cluster) key(name string) object.Key { return object.Key{Namespace: c.namespace, Name: name} }

func (c *cluster) deployment(name string) *appsv1.Deployment {
	c.t.Helper()
	d, err := client.For[*appsv1.Deployment](c.Client).Get(c.t.Context(), c.key(name))
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

func (c *cluster) sets() []*appsv1.ReplicaSet {
	c.t.Helper()
	sets, _, err := client.For[*appsv1.ReplicaSet](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		c.t.Fatal(err)
	}
	return sets
}
