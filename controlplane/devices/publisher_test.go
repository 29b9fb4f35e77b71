// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/controlplane/nodes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory with the simulation, inside of a bubble of synctest.
type cluster struct {
	t                     *testing.T
	nodes, slices, events *fakeapi.Resource
	ready                 atomic.Bool
}

// play runs a scene with the simulation. The server serves resource.k8s.io/v1 or not.
func play(t *testing.T, served bool, scene func(*cluster)) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		c := &cluster{
			t:      t,
			nodes:  api.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}, fakeapi.WithStatus()),
			events: api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}),
		}
		if served {
			api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "deviceclasses", Kind: "DeviceClass"})
			c.slices = api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "resourceslices", Kind: "ResourceSlice"})
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- Run(ctx, Options{Config: api.Config(), OnReady: func() { c.ready.Store(true) }, Logger: slog.New(slog.DiscardHandler)})
		}()
		synctest.Wait()
		if !c.ready.Load() {
			t.Error("the simulation is not ready")
		}
		scene(c)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// settle waits until nothing is left to do now or within a second.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// putNode stores a Node, with a taint annotation unless that is "".
func (c *cluster) putNode(name, taints string) {
	c.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{nodes.ManagedLabel: "true"}}}
	if taints != "" {
		node.Annotations = map[string]string{TaintAnnotation: taints}
	}
	if err := c.nodes.Put(node); err != nil {
		c.t.Fatal(err)
	}
	settle()
}

func (c *cluster) slice(node string) *resourcev1.ResourceSlice {
	c.t.Helper()
	u := c.slices.Get(object.Key{Name: sliceName(node)})
	if u == nil {
		c.t.Fatalf("there is no ResourceSlice of %s; there are %q", node, c.slices.Keys())
	}
	slice := &resourcev1.ResourceSlice{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, slice); err != nil {
		c.t.Fatal(err)
	}
	return slice
}

func TestASimulatedNodeHasASliceOfItsOwn(t *testing.T) {
	play(t, true, func(c *cluster) {
		c.putNode("node-0", "")
		if err := c.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}}); err != nil {
			t.Fatal(err)
		}
		settle()
		if got := strings.Join(c.slices.Keys(), " "); got != "node-0-devices.sim.setpoint.io" {
			t.Errorf("there are the slices %s, want the one of node-0", got)
		}
		slice := c.slice("node-0")
		if owner := metav1.GetControllerOf(slice); owner == nil || owner.Kind != "Node" || owner.UID != c.nodes.UID(object.Key{Name: "node-0"}) {
			t.Errorf("the slice is owned by %v, want the Node", owner)
		}
		if p := slice.Spec.Pool; p.Name != "node-0" || p.Generation != 1 || p.ResourceSliceCount != 1 {
			t.Errorf("the pool is %+v", p)
		}
		if len(slice.Spec.Devices) != 4 || *slice.Spec.Devices[2].Attributes["model"].StringValue != "large" {
			t.Errorf("the devices are %+v", slice.Spec.Devices)
		}
		writes := len(c.slices.Calls())
		c.putNode("node-0", "")
		if now := c.slices.Calls(); len(now) != writes {
			t.Errorf("nothing has changed, and there were the requests %q", now[writes:])
		}
	})
}

func TestASliceGoesWithItsNodeAndComesBackWithTheNextOne(t *testing.T) {
	play(t, true, func(c *cluster) {
		c.putNode("node-0", "")
		c.nodes.Remove(object.Key{Name: "node-0"})
		settle()
		if got := c.slices.Keys(); len(got) > 0 {
			t.Errorf("the Node is gone, and the slices %q are left", got)
		}
		c.putNode("node-0", "")
		// A Node of the same name takes over what the one before it has left.
		first := c.slice("node-0")
		first.OwnerReferences[0].UID = "gone"
		if err := c.slices.Put(first); err != nil {
			t.Fatal(err)
		}
		settle()
		if owner := metav1.GetControllerOf(c.slice("node-0")); owner.UID != c.nodes.UID(object.Key{Name: "node-0"}) {
			t.Errorf("the slice is owned by the UID %s", owner.UID)
		}
		// A slice that a user deletes comes back.
		c.slices.Remove(object.Key{Name: sliceName("node-0")})
		settle()
		c.slice("node-0")
	})
}

func TestTheAnnotationOfANodeTaintsADeviceAndClearsIt(t *testing.T) {
	play(t, true, func(c *cluster) {
		c.putNode("node-0", "")
		for i, scene := range []struct{ annotation, want string }{
			{"gpu-0=unhealthy:NoExecute", "gpu-0=unhealthy=:NoExecute"},
			{"gpu-0=unhealthy:NoExecute,gpu-1=hot:NoSchedule", "gpu-0=unhealthy=:NoExecute gpu-1=hot=:NoSchedule"},
			{"", ""},
		} {
			c.putNode("node-0", scene.annotation)
			slice := c.slice("node-0")
			if got := strings.Join(taintsOf(slice.Spec.Devices), " "); got != scene.want {
				t.Errorf("annotation %q: the taints are %q, want %q", scene.annotation, got, scene.want)
			}
			if want := int64(i + 2); slice.Spec.Pool.Generation != want {
				t.Errorf("annotation %q: generation %d of the pool, want %d", scene.annotation, slice.Spec.Pool.Generation, want)
			}
		}
	})
}

func TestABadAnnotationIsReportedOnce(t *testing.T) {
	play(t, true, func(c *cluster) {
		for range 3 {
			c.putNode("node-0", "gpu-7=unhealthy:NoExecute")
		}
		keys := c.events.Keys()
		if len(keys) != 1 {
			t.Fatalf("there are the Events %q, want one", keys)
		}
		namespace, name, _ := strings.Cut(keys[0], "/")
		event := &eventsv1.Event{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.events.Get(object.Key{Namespace: namespace, Name: name}).Object, event); err != nil {
			t.Fatal(err)
		}
		if event.Reason != "InvalidSimulation" || !strings.Contains(event.Note, `the node has no device "gpu-7"`) || event.Regarding.Name != "node-0" {
			t.Errorf("the Event is %s %q about %s", event.Reason, event.Note, event.Regarding.Name)
		}
		if got := taintsOf(c.slice("node-0").Spec.Devices); len(got) > 0 {
			t.Errorf("the devices have the taints %q", got)
		}
	})
}

func TestAServerWithoutTheGroupHasNoDevices(t *testing.T) {
	play(t, false, func(c *cluster) {
		c.putNode("node-0", "gpu-7=unhealthy:NoExecute")
		if got := c.nodes.Calls(); len(got) > 0 {
			t.Errorf("the simulation made the requests %q", got)
		}
	})
}
