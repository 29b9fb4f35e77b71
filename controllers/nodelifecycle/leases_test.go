// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// leaseCluster is a server in memory with Nodes and their Leases. Watches of Leases may
// lag on their own. It is used inside of a synctest bubble.
type leaseCluster struct {
	t             *testing.T
	nodes, leases *fakeapi.Resource
	client        *client.Client
}

// newLeaseCluster returns a cluster of nodes that are ready and have renewed their Leases.
func newLeaseCluster(t *testing.T, names ...string) *leaseCluster {
	t.Helper()
	// The Pods and the Events are not looked at.
	server := fakeapi.New(podResource, object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	c := &leaseCluster{
		t:      t,
		nodes:  server.Serve(nodeResource),
		leases: server.Serve(object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}),
	}
	var err error
	if c.client, err = client.New(c.nodes.Config()); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		node := nodeWith(name, corev1.ConditionTrue)
		node.UID = types.UID(name)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
		if err := c.nodes.Add(node); err != nil {
			t.Fatal(err)
		}
		if err := c.leases.Add(lease); err != nil {
			t.Fatal(err)
		}
	}
	c.renew(names...)
	return c
}

// start runs the controller, and has it see the cluster for some time.
func (c *leaseCluster) start(o Options) *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.nodes.Config(), managertest.Making(New, o))
	synctest.Wait()
	return p
}

func (c *leaseCluster) renew(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := merge(c.t, c.leases, leaseOf(name), map[string]any{"spec": map[string]any{"renewTime": metav1.NowMicro()}}); err != nil {
			c.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// live has some nodes renew their Leases for a time, and before its end.
func (c *leaseCluster) live(d time.Duration, names ...string) {
	c.t.Helper()
	for ; d > 0; d -= beat {
		c.renew(names...)
		pass(min(d, beat))
	}
}

// pass lets time pass, and what is due then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *leaseCluster) node(name string) *corev1.Node {
	c.t.Helper()
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.nodes.Get(object.Key{Name: name}).Object, &node); err != nil {
		c.t.Fatal(err)
	}
	return &node
}

// unknown returns the nodes whose conditions say that nothing is known of them.
func (c *leaseCluster) unknown() []string {
	c.t.Helper()
	var names []string
	for _, name := range c.nodes.Keys() {
		if node := c.node(name); readyStatus(node) == corev1.ConditionUnknown {
			names = append(names, name)
		}
	}
	return names
}

func (c *leaseCluster) wantUnknown(when string, want ...string) {
	c.t.Helper()
	if got := c.unknown(); !slices.Equal(got, want) {
		c.t.Errorf("%s nothing is known of %v, want %v", when, got, want)
	}
}

// reads returns how often a Lease was read from the server.
func (c *leaseCluster) reads() int {
	n := 0
	for _, what := range c.leases.Calls() {
		if strings.HasPrefix(what, "get ") {
			n++
		}
	}
	return n
}

func TestNodesWhoseRenewalsTheCacheHasMissedAreNotTurnedUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []string{"a", "b", "c", "d", "e"}
		c := newLeaseCluster(t, all...)
		c.start(Defaults())
		c.live(time.Minute, all...)
		c.leases.HoldWatches(true)
		c.live(10*time.Minute, all...)
		c.wantUnknown("while the watch of Leases lags")
		// In a grace period, at most one of each node.
		if n, most := c.reads(), len(all)*(1+int(10*time.Minute/(50*time.Second))); n == 0 || n > most {
			t.Errorf("%d Leases were read from the server, want one or more, and no more than %d", n, most)
		}
		c.leases.HoldWatches(false)
		c.live(time.Minute, all...)
		c.leases.Forget()
		c.live(2*time.Minute, all[1:]...)
		c.wantUnknown("with a dead and the watch well", "a")
		if n := c.reads(); n != 1 {
			t.Errorf("%d Leases were read from the server for a node that fell silent, want one", n)
		}
		if node := c.node("a"); !hasNoExecute(node.Spec.Taints) {
			t.Errorf("the dead node has the taints %v, want NoExecute too", texts(node.Spec.Taints))
		}
	})
}

// The cache is found to be behind by one Lease: what it says of the others is not
// believed either until it has caught up.
func TestNobodyIsTurnedUnknownBeforeTheCacheOfLeasesHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLeaseCluster(t, "alive", "dead")
		c.start(Defaults())
		c.live(time.Minute, "alive", "dead")
		c.renew("alive", "dead")
		pass(5 * time.Second)
		c.renew("dead")       // the last time
		pass(2 * time.Second) // at which the watch is looked at
		c.leases.HoldWatches(true)
		pass(2 * time.Second)
		c.live(35*time.Second, "alive")
		c.wantUnknown("before anybody seems silent")
		pass(8 * time.Second) // the live one seems silent, then the dead one too
		if c.reads() == 0 {
			t.Error("no Lease was read from the server")
		}
		c.live(10*time.Second, "alive")
		c.wantUnknown("while the cache is known to be behind")
		c.leases.HoldWatches(false)
		synctest.Wait()
		pass(2 * time.Second)
		c.wantUnknown("once the cache has caught up", "dead")
	})
}

// Somebody else may write to the Lease of a node that is dead: that is no renewal.
func TestADeadNodeWhoseLeaseIsAnnotatedIsTurnedUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLeaseCluster(t, "alive", "dead")
		c.start(Defaults())
		c.live(time.Minute, "alive", "dead")
		for i := range 12 {
			annotated := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"round": strings.Repeat("i", i)}}}
			if err := merge(t, c.leases, leaseOf("dead"), annotated); err != nil {
				t.Fatal(err)
			}
			c.live(beat, "alive")
		}
		c.wantUnknown("although its Lease is annotated all the time", "dead")
	})
}

func TestANodeWithoutLeaseIsTurnedUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLeaseCluster(t, "alive", "dead")
		c.start(Defaults())
		if err := client.For[*coordinationv1.Lease](c.client).Delete(t.Context(), leaseOf("dead")); err != nil {
			t.Fatal(err)
		}
		c.live(2*time.Minute, "alive")
		c.wantUnknown("without a Lease", "dead")
	})
}

// What the server says of a Lease is waited for. What else is to be done about the node
// is not.
func TestASilentNodeWhoseLeaseCannotBeReadIsNotTurnedUnknownButTainted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLeaseCluster(t, "alive", "dead")
		refuse := true
		c.leases.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "get" && refuse {
				return fakeapi.Forbidden("get leases")
			}
			return nil
		})
		p := c.start(Defaults())
		c.live(3*time.Minute, "alive")
		c.wantUnknown("while the Lease cannot be read")
		if !slices.ContainsFunc(p.Warnings(), func(w string) bool {
			return strings.Contains(w, "dead") && strings.Contains(w, "Lease") && strings.Contains(w, "forbidden")
		}) {
			t.Errorf("the log says %q, want the node and why its Lease cannot be read", p.Warnings())
		}
		if err := merge(t, c.nodes, object.Key{Name: "dead"}, map[string]any{"spec": map[string]any{"unschedulable": true}}); err != nil {
			t.Fatal(err)
		}
		c.live(beat, "alive")
		if got, want := texts(c.node("dead").Spec.Taints), []string{"node.kubernetes.io/unschedulable:NoSchedule"}; !slices.Equal(got, want) {
			t.Errorf("the silent node has the taints %v, want %v", got, want)
		}
		refuse = false
		c.live(time.Minute, "alive")
		c.wantUnknown("once it can be read", "dead")
	})
}

// With all nodes silent by a cache that lags the cluster is not down, and who is dead
// keeps its taint.
func TestNoTaintIsLiftedBecauseTheCacheOfLeasesIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []string{"a", "b", "c", "dead"}
		c := newLeaseCluster(t, all...)
		c.start(Defaults())
		c.live(time.Minute, all...)
		c.live(2*time.Minute, all[:3]...)
		if node := c.node("dead"); !hasNoExecute(node.Spec.Taints) {
			t.Fatalf("the dead node has the taints %v, want NoExecute", texts(node.Spec.Taints))
		}
		before := c.node("dead").ResourceVersion
		c.leases.HoldWatches(true)
		c.live(10*time.Minute, all[:3]...)
		c.leases.HoldWatches(false)
		c.live(time.Minute, all[:3]...)
		if node := c.node("dead"); node.ResourceVersion != before {
			t.Errorf("the dead node was written to: version %s, was %s, taints %v", node.ResourceVersion, before, texts(node.Spec.Taints))
		}
		c.wantUnknown("in the end", "dead")
	})
}

func TestWithCachedLeasesTrustedNoneIsReadFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLeaseCluster(t, "a", "b")
		c.start(with(func(o *Options) { o.TrustCachedLeases = true }))
		c.live(time.Minute, "a", "b")
		c.leases.HoldWatches(true)
		c.live(2*time.Minute, "a", "b")
		c.wantUnknown("by what the cache says", "a", "b")
		if n := c.reads(); n != 0 {
			t.Errorf("%d Leases were read from the server, want none", n)
		}
	})
}

// A server that was restored from a backup does not reach the version that is waited for.
func TestTheWaitForAVersionOfTheLeasesEnds(t *testing.T) {
	var b behind
	began := time.Unix(1000, 0)
	end := began.Add(time.Minute)
	dropped := map[object.Version]int{}
	seen := map[object.Version]chan struct{}{"8": make(chan struct{}), "9": make(chan struct{}), "10": make(chan struct{})}
	until := func(version object.Version) bool {
		return b.until(version, end, seen[version], func() { dropped[version]++ })
	}
	want := func(when string, at time.Time, holds, caughtUp bool) {
		t.Helper()
		if h, c := b.holds(at); h != holds || c != caughtUp {
			t.Errorf("%s: holds %t, caught up %t; want %t, %t", when, h, c, holds, caughtUp)
		}
	}
	want("before anything is waited for", began, false, false)
	if !until("9") || until("10") || until("8") {
		t.Error("want the first wait to be told as the first, and no other")
	}
	want("while nothing is seen", began, true, false)
	close(seen["9"])
	want("with an older version seen", began, true, false)
	close(seen["10"])
	want("with the newest version seen", began, false, true)
	want("afterwards", began, false, false)
	if !until("8") {
		t.Error("a new wait is not told as the first")
	}
	want("shortly before the end", end.Add(-1), true, false)
	want("at the end", end, false, false)
	want("after the end", end, false, false)
	if want := map[object.Version]int{"8": 2, "9": 1, "10": 1}; !maps.Equal(dropped, want) {
		t.Errorf("dropped %v, want %v: each wait once", dropped, want)
	}
}

func TestWithoutJudgementNodesAppearAndGoAndNothingElse(t *testing.T) {
	o, err := Defaults().complete()
	if err != nil {
		t.Fatal(err)
	}
	m, now := newMonitor(o), time.Unix(1000, 0)
	nodes := []sighting{{name: "down", ready: corev1.ConditionFalse}, {name: "silent", ready: corev1.ConditionTrue}, {name: "gone", ready: corev1.ConditionTrue}}
	look := func(judge bool) findings {
		now = now.Add(o.NodeMonitorGracePeriod / 2)
		return m.look(slices.Values(nodes), judge, now)
	}
	if f := look(false); len(f.appeared) != 3 || len(f.attention) != 0 {
		t.Errorf("at first %d appeared and %v need attention; want 3, and none", len(f.appeared), f.attention)
	}
	nodes = nodes[:2]
	if f := look(false); len(f.gone) != 1 || f.again != o.NodeMonitorPeriod/looksInAPeriod {
		t.Errorf("%v are gone, the next look is in %s; want one, and the usual time", f.gone, f.again)
	}
	if f := look(false); len(f.attention) != 0 || f.changed {
		t.Errorf("%v need attention, the cluster has changed: %t; want none, and no", f.attention, f.changed)
	}
	if f := look(true); !slices.Equal(f.attention, []string{"down", "silent"}) || f.changed {
		t.Errorf("judged, %v need attention, the cluster has changed: %t; want both, and no", f.attention, f.changed)
	}
}

// The silence of all nodes lifts no taint as long as it is not confirmed.
func TestTheClusterIsDownWhenTheSilenceOfItsNodesIsConfirmed(t *testing.T) {
	o, err := Defaults().complete()
	if err != nil {
		t.Fatal(err)
	}
	m, now := newMonitor(o), time.Unix(1000, 0)
	nodes := []sighting{{name: "a", uid: "a", ready: corev1.ConditionTrue}, {name: "b", uid: "b", ready: corev1.ConditionTrue}}
	look := func() findings {
		now = now.Add(o.NodeMonitorGracePeriod / 2)
		return m.look(slices.Values(nodes), true, now)
	}
	look()
	look()
	if f := look(); f.changed || f.allDown || m.mode("a") != holdNoExecute || !slices.Equal(f.attention, []string{"a", "b"}) {
		t.Errorf("by the cache alone: %+v, mode %d; want nothing but attention", f, m.mode("a"))
	}
	m.confirm("a", "a")
	m.confirm("b", "another")
	if f := look(); f.changed || f.allDown {
		t.Errorf("with one confirmed: %+v; want no change", f)
	}
	m.confirm("b", "b")
	if f := look(); !f.changed || !f.allDown || m.mode("a") != liftNoExecute {
		t.Errorf("with both confirmed: %+v, mode %d; want all down", f, m.mode("a"))
	}
	nodes[0].heartbeat = now
	if f := look(); !f.changed || f.allDown {
		t.Errorf("with one back: %+v; want that it is not all down", f)
	}
	look()
	if f := look(); f.changed || f.allDown {
		t.Errorf("with that one silent again by the cache: %+v; want no change", f)
	}
}

var (
	nodeResource = object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}
	podResource  = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
)
