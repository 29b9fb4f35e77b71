// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodettl

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, used inside of a synctest bubble.
type cluster struct {
	*fakeapi.Resource
	t     *testing.T
	nodes client.Typed[*corev1.Node]
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Resource: fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}), t: t}
	api, err := client.New(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	c.nodes = client.For[*corev1.Node](api)
	return c
}

func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.Config(), managertest.Making(New, Defaults()))
	settle()
	return p
}

func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// resize has the cluster have the nodes from 0 on.
func (c *cluster) resize(n int) {
	c.t.Helper()
	for i := len(c.Keys()); i < n; i++ {
		if err := c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%03d", i)}}); err != nil {
			c.t.Fatal(err)
		}
	}
	for i := len(c.Keys()) - 1; i >= n; i-- {
		if err := c.nodes.Delete(c.t.Context(), object.Key{Name: fmt.Sprintf("n%03d", i)}); err != nil {
			c.t.Fatal(err)
		}
	}
	settle()
}

// want compares the annotations of all nodes.
func (c *cluster) want(when, seconds string) {
	c.t.Helper()
	for _, name := range c.Keys() {
		if got := c.Get(object.Key{Name: name}).GetAnnotations()["node.alpha.kubernetes.io/ttl"]; got != seconds {
			c.t.Fatalf("%s %s says %q, want %q", when, name, got, seconds)
		}
	}
}

func TestAllNodesAreAnnotatedAsTheClusterGrowsAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.resize(100)
		c.want("with 100 nodes", "0")
		c.resize(101)
		c.want("with 101 nodes", "15")
		c.resize(90)
		c.want("with 90 nodes", "15")
		c.resize(89)
		c.want("with 89 nodes", "0")
		if n := len(p.Writes()); n != 100+101+89 {
			t.Errorf("%d writes, want each node written once on each step, %d", n, 100+101+89)
		}
	})
}

func TestAnAnnotationThatSomebodyChangedComesBackAndHeartbeatsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.resize(1)
		p := c.start()
		c.want("at first", "0")
		change := func(what map[string]any) {
			t.Helper()
			patch, err := client.MergePatch(what)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.nodes.Patch(t.Context(), object.Key{Name: "n000"}, patch); err != nil {
				t.Fatal(err)
			}
			settle()
		}
		for i := range 10 {
			change(map[string]any{"status": map[string]any{"phase": fmt.Sprint(i)}})
		}
		if n := len(p.Writes()); n != 1 {
			t.Errorf("%d writes after ten heartbeats, want one", n)
		}
		for _, wrong := range []any{"3600", "soon", nil} {
			change(map[string]any{"metadata": map[string]any{"annotations": map[string]any{corev1.ObjectTTLAnnotationKey: wrong}}})
			c.want(fmt.Sprintf("after somebody wrote %v", wrong), "0")
		}
	})
}

// A process that starts writes only what is missing.
func TestKilledProcessesWriteNothingTwiceAndNothingWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		c.resize(200)
		writes := 0
		for range 5 {
			p := managertest.Run(t, c.Config(), managertest.Making(New, Options{Workers: 1}))
			time.Sleep(205 * time.Millisecond)
			p.Kill()
			if n := len(p.Writes()); n < 10 || n > 30 {
				t.Errorf("a process wrote %d times, want about 20", n)
			}
			writes += len(p.Writes())
		}
		p := c.start()
		c.want("at last", "15")
		if writes += len(p.Writes()); writes > 200 {
			t.Errorf("%d writes for 200 nodes", writes)
		}
	})
}

func TestNegativeWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
}
