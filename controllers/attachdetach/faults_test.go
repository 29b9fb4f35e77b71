// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// quiet fails the test if the controller writes anything in a time in which nothing happens.
func (c *cluster) quiet(when string, d time.Duration) {
	c.t.Helper()
	c.api.Forget()
	pass(d)
	for _, q := range c.api.Requests() {
		switch q.Verb {
		case "create", "update", "patch", "delete":
			c.t.Errorf("%s it makes the request %s", when, q)
		}
	}
}

// wantReason fails the test unless one of the present reasons about a volume begins with that.
func (c *cluster) wantReason(p *managertest.Process, volume, want string) {
	c.t.Helper()
	if reasons := p.Reasons(string(unique(volume))); !slices.ContainsFunc(reasons, func(is string) bool { return strings.HasPrefix(is, want) }) {
		c.t.Errorf("the reasons are\n%s, want\n%s", strings.Join(reasons, "\n"), want)
	}
}

// Two Pods want one volume at two nodes, and the driver never detaches it from the first one.
func TestADriverThatNeverDetachesIsSaidOnceAndDelaysNoOtherVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		c.addVolume("other")
		p := c.start()
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		c.with(func() { c.hangs = true }) // the test answers from now on
		c.removePod("web-0")
		c.addPod("web-1", "b", "data")
		pass(time.Second)
		const waits = `Waiting for detach for volume "pv-data" Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node`
		c.wantNote(reasonFailedAttach, "web-1", waits)
		want := codeElsewhere + ": Pod ns/web-1: the volume pv-data is to be attached to node b and is at node a (until the volume is detached there)"
		if reasons := p.Reasons(string(unique("data"))); len(reasons) == 0 || !strings.Contains(strings.Join(reasons, "\n"), want) {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
		c.wantReason(p, "data", codeDetaching+": Pod ns/web-1: the driver disk.example.com detaches the volume pv-data from node a (until the driver removes its finalizer from the VolumeAttachment)")
		c.addPod("db-0", "b", "other")
		pass(time.Second)
		c.answer("other", "b", attached)
		c.wantMounted("beside the volume that hangs", "other", "b")
		pass(time.Minute)
		c.quiet("while the driver does not detach it", 3*time.Minute)
		c.wantNote(reasonFailedAttach, "web-1", waits)
		c.wantAt("while the driver does not detach it", "data", "a")
		c.with(func() { c.hangs = false })
		pass(time.Second)
		c.wantMounted("after the driver has detached it", "data", "b")
	})
}

// The kubelet, the API server and the driver are waited for in turn. A Pod that waits for the volume says for which.
func TestEachWaitOfADetachIsStated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.addVolume("data")
		refuses := c.refusing("patch")
		p := c.start()
		refuses.Store(true)
		c.addPod("web-0", "a", "data")
		pass(time.Second)
		c.wantReason(p, "data", codeReporting+": Pod ns/web-0: the volume pv-data is attached, and the status of node a does not say so yet (until the status of the node is written)")
		refuses.Store(false)
		pass(time.Minute)
		c.wantMounted("when the status says so", "data", "a")
		c.with(func() { c.silent["a"], c.hangs = true, true })
		c.removePod("web-0")
		c.addPod("web-1", "b", "data")
		pass(time.Second)
		c.wantReason(p, "data", codeInUse+": Pod ns/web-1: node a has the volume pv-data in use (until the kubelet unmounts the volume)")
		refuses.Store(true)
		c.with(func() { delete(c.silent, "a") })
		pass(time.Minute)
		c.wantReason(p, "data", codeChecking+": Pod ns/web-1: the volume pv-data is checked on node a before it is detached (until the check ends)")
		refuses.Store(false)
		pass(time.Minute)
		c.removePod("web-1")
		c.addPod("web-2", "a", "data")
		pass(time.Second)
		c.wantReason(p, "data", codeDetaching+": Pod ns/web-2: the volume pv-data is being detached from node a and is attached again after that (until the driver removes its finalizer from the VolumeAttachment)")
		c.with(func() { c.hangs = false })
		pass(2 * time.Minute)
		c.wantMounted("at last", "data", "a")
		if reasons := p.Reasons(string(unique("data"))); len(reasons) > 0 {
			t.Errorf("at last the reasons are %q", reasons)
		}
	})
}

// refusing has the API server refuse requests about Nodes of a verb while the value is set.
func (c *cluster) refusing(verb string) *atomic.Bool {
	var on atomic.Bool
	c.nodes.Before(func(q *fakeapi.Request) *metav1.Status {
		if on.Load() && q.Verb == verb {
			return fakeapi.Unavailable(0)
		}
		return nil
	})
	return &on
}

// A PersistentVolume is removed with force while its Pod runs.
func TestAVolumeWhoseObjectIsGoneIsDetachedAfterItsPod(t *testing.T) {
	for name, restarts := range map[string]bool{"in one process": false, "after a kill": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, "a")
				c.addVolume("data")
				p := c.start()
				c.addPod("web-0", "a", "data")
				pass(time.Second)
				c.pvs.Remove(object.Key{Name: "pv-data"})
				if restarts {
					p.Kill()
					c.start()
				}
				pass(time.Hour)
				c.wantAt("while the kubelet has it mounted", "data", "a")
				c.wantMounted("while the Pod runs", "data", "a")
				c.removePod("web-0")
				pass(time.Minute)
				c.wantAt("after the Pod", "data")
			})
		})
	}
}

// An Event must not show a user the Pods of namespaces that the user may not read.
func TestPodsOfOtherNamespacesAreCountedAndNotNamed(t *testing.T) {
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for want, users := range map[string][]*corev1.Pod{
		"Volume is already used by pod(s) a, b":                                         {pod("ns", "a"), pod("ns", "b")},
		"Volume is already used by pod(s) a and 2 pod(s) in different namespaces":       {pod("ns", "a"), pod("other", "secret"), pod("third", "secret")},
		"Volume is already used by 1 pod(s) in different namespaces":                    {pod("other", "secret")},
		"Volume is already exclusively attached to one node, waiting on detach before ": nil,
	} {
		text := multiAttach(view{source: source{name: "v"}}, pod("ns", "waits"), users)
		if !strings.HasPrefix(text, `Waiting for detach for volume "v" `+want) || strings.Contains(text, "secret") {
			t.Errorf("the Event says %q, want %q", text, want)
		}
		if reason := forWhom(pod("ns", "waits"), users); strings.Contains(reason, "secret") {
			t.Errorf("the reason says %q", reason)
		}
	}
}
