// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/nodestate"
	"github.com/setpoint-io/setpoint/manager"
)

// beat is how often a kubelet gives a sign of life.
const beat = 10 * time.Second

// machine is a node with its kubelet. The kubelet's clock is three hours off.
type machine struct {
	node   *corev1.Node
	lease  *coordinationv1.Lease
	dead   bool // gives no sign of life
	status bool // beats by its status, not by its Lease
	next   time.Time
}

// world is a cluster and a monitor that looks at it. It does to the nodes what the
// controller does, with no delay. It is used inside of a synctest bubble.
type world struct {
	t        *testing.T
	monitor  *monitor
	machines []*machine
	turned   map[string]time.Duration // when conditions were turned Unknown
	tainted  map[string]time.Duration // when a NoExecute taint was set
	order    []string                 // in which nodes were tainted
	began    time.Time
	look     time.Time // the next one
	last     findings
}

func newWorld(t *testing.T, o Options) *world {
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, monitor: newMonitor(o), turned: map[string]time.Duration{}, tainted: map[string]time.Duration{}, began: time.Now(), look: time.Now()}
}

// add adds n ready nodes to a zone, called after it.
func (w *world) add(zone string, n int) []*machine {
	for i := range n {
		name := fmt.Sprintf("%s-%02d", zone, i)
		m := &machine{node: nodeWith(name, corev1.ConditionTrue), lease: &coordinationv1.Lease{}, next: time.Now()}
		m.node.UID = types.UID(name)
		m.node.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		m.node.CreationTimestamp = metav1.Now()
		w.machines = append(w.machines, m)
	}
	return w.machines[len(w.machines)-n:]
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	for end := time.Now().Add(d); ; time.Sleep(time.Second) {
		now := time.Now()
		for _, m := range w.machines {
			m.live(now)
		}
		if !now.Before(w.look) {
			w.last = w.monitor.look(w.see(), true, now)
			w.look = now.Add(w.last.again)
			w.attend(now)
		}
		if !now.Before(end) {
			return
		}
	}
}

func (m *machine) live(now time.Time) {
	if m.dead || now.Before(m.next) {
		return
	}
	m.next = now.Add(beat)
	theirs := now.Add(-3 * time.Hour)
	if c := nodestate.Condition(m.node, corev1.NodeReady); c != nil && c.Status == corev1.ConditionUnknown {
		c.Status, c.LastHeartbeatTime = corev1.ConditionTrue, metav1.NewTime(theirs)
	} else if m.status {
		c.LastHeartbeatTime = metav1.NewTime(theirs)
	}
	if !m.status {
		renewed := metav1.NewMicroTime(theirs)
		m.lease.Spec.RenewTime = &renewed
	}
}

func (w *world) see() iter.Seq[sighting] {
	return func(yield func(sighting) bool) {
		for _, m := range w.machines {
			if !yield(see(m.node, m.lease)) {
				return
			}
		}
	}
}

// attend does what the controller does about a node.
func (w *world) attend(now time.Time) {
	for _, m := range w.machines {
		// Events reach the controller for every node whose taints are not right,
		// the monitor names the rest.
		v := w.monitor.on(see(m.node, m.lease), now)
		if v.silent {
			w.monitor.confirm(m.node.Name, m.node.UID)
			for _, c := range conditionsToTurn(m.node, now) {
				if !slices.Contains(w.last.attention, m.node.Name) {
					w.t.Errorf("%s is silent and nobody was told", m.node.Name)
				}
				w.turned[m.node.Name] = now.Sub(w.began)
				setCondition(m.node, c.Type, c.Status)
			}
		}
		had := hasNoExecute(m.node.Spec.Taints)
		m.node.Spec.Taints, _ = taintsOf(m.node, v.noExecute, now)
		if !had && hasNoExecute(m.node.Spec.Taints) {
			if !slices.Contains(w.last.attention, m.node.Name) {
				w.t.Errorf("%s may be tainted and nobody was told", m.node.Name)
			}
			w.tainted[m.node.Name] = now.Sub(w.began)
			w.order = append(w.order, m.node.Name)
		}
	}
}

// ready counts the machines whose node is ready.
func (w *world) ready() int {
	n := 0
	for _, m := range w.machines {
		if readyStatus(m.node) == corev1.ConditionTrue {
			n++
		}
	}
	return n
}

// noExecutes counts the nodes with a NoExecute taint.
func (w *world) noExecutes() int {
	n := 0
	for _, m := range w.machines {
		if hasNoExecute(m.node.Spec.Taints) {
			n++
		}
	}
	return n
}

func kill(machines []*machine) {
	for _, m := range machines {
		m.dead = true
	}
}

func TestNodesThatBeatByLeaseOrStatusAreNeverTurnedUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		w.add("a", 2)[1].status = true
		w.run(time.Hour)
		if len(w.turned) != 0 || len(w.tainted) != 0 {
			t.Errorf("turned %v, tainted %v; want none", w.turned, w.tainted)
		}
	})
}

func TestASilentNodeIsTurnedUnknownAfterTheGracePeriodByTheLocalClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 5)
		w.run(5 * time.Minute)
		kill(machines[:1])
		w.run(time.Minute)
		// The last sign of life was at most a beat before, and is noticed at the next
		// look.
		earliest, latest := 5*time.Minute-beat+50*time.Second, 5*time.Minute+51*time.Second
		if at, turned := w.turned["a-00"]; !turned || at < earliest || at > latest || len(w.turned) != 1 {
			t.Errorf("turned %v, want a-00 alone between %s and %s", w.turned, earliest, latest)
		}
		if w.tainted["a-00"] != w.turned["a-00"] {
			t.Errorf("tainted at %s, turned at %s; want both at once", w.tainted["a-00"], w.turned["a-00"])
		}
		for _, kind := range kubeletConditions {
			if c := nodestate.Condition(machines[0].node, kind); c == nil || c.Status != corev1.ConditionUnknown {
				t.Errorf("condition %s = %v, want Unknown", kind, c)
			}
		}
	})
}

// Upstream looks every ten minutes then, and finds a Node silent at the first look after forty
// seconds of silence.
func TestAPeriodAboveTheGracePeriodFindsSilentNodesWithinThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, with(func(o *Options) { o.NodeMonitorPeriod, o.NodeMonitorGracePeriod = 10*time.Minute, 40*time.Second }))
		machines := w.add("a", 5)
		w.run(31 * time.Minute)
		kill(machines[:1])
		w.run(11 * time.Minute)
		earliest, latest := 31*time.Minute-beat+40*time.Second, 41*time.Minute+40*time.Second
		if at, turned := w.turned["a-00"]; !turned || at < earliest || at > latest || len(w.turned) != 1 {
			t.Errorf("turned %v, want a-00 alone between %s and %s", w.turned, earliest, latest)
		}
	})
}

func TestANodeThatNeverPostedAStatusHasTheStartUpTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		w.add("a", 3)
		starting := w.add("b", 1)[0]
		starting.node.Status.Conditions, starting.dead = nil, true
		starting.node.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) // the server's clock may be wrong too
		w.run(2 * time.Minute)
		if at := w.turned["b-00"]; at != 60*time.Second {
			t.Errorf("turned after %s, want 60 s", at)
		}
		if c := nodestate.Condition(starting.node, corev1.NodeReady); c == nil || c.Status != corev1.ConditionUnknown {
			t.Errorf("Ready = %v, want Unknown", c)
		}
	})
}

func TestNodesThatFallSilentOneAfterTheOtherAreNoticedSoonWithAFewLooks(t *testing.T) {
	o, err := Defaults().complete()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1000, 0)
	m := newMonitor(o)
	var nodes []sighting
	silentAt := map[string]time.Time{} // the looks are told of one every 10 ms
	for i := range 500 {
		name := fmt.Sprint(i)
		nodes = append(nodes, sighting{name: name, ready: corev1.ConditionTrue})
		at := began.Add(time.Duration(i) * 10 * time.Millisecond)
		m.look(slices.Values(nodes), true, at)
		silentAt[name] = at.Add(o.NodeMonitorGracePeriod)
	}
	now := began.Add(o.NodeMonitorPeriod)
	calm, busy := 0, 0
	for now.Before(began.Add(o.NodeMonitorGracePeriod + 2*o.NodeMonitorPeriod)) {
		f := m.look(slices.Values(nodes), true, now)
		for i := range nodes {
			if n := &nodes[i]; slices.Contains(f.attention, n.name) && !n.unknown {
				if late := now.Sub(silentAt[n.name]); late < 0 || late > o.NodeMonitorPeriod/atMostInAPeriod {
					t.Fatalf("%s is noticed %s after it has fallen silent", n.name, late)
				}
				n.unknown = true
				delete(silentAt, n.name)
			}
		}
		if now.Before(began.Add(o.NodeMonitorGracePeriod)) {
			calm++
		} else {
			busy++
		}
		now = now.Add(f.again)
	}
	if len(silentAt) > 0 {
		t.Errorf("%d nodes were never noticed", len(silentAt))
	}
	if most := int(o.NodeMonitorGracePeriod/o.NodeMonitorPeriod) * looksInAPeriod; calm > most || busy > 2*atMostInAPeriod {
		t.Errorf("%d looks before, %d while they fall silent", calm, busy)
	}
}

// A run that has failed is tried again with pauses, which attention cuts short.
func TestASilentNodeThatIsNotTurnedIsAttendedToOnceInAPeriod(t *testing.T) {
	o, err := Defaults().complete()
	if err != nil {
		t.Fatal(err)
	}
	m, began := newMonitor(o), time.Unix(1000, 0)
	node := sighting{name: "a", ready: corev1.ConditionTrue}
	var attended []time.Duration
	for passed := time.Duration(0); passed < 2*o.NodeMonitorGracePeriod; {
		f := m.look(slices.Values([]sighting{node}), true, began.Add(passed))
		if len(f.attention) > 0 {
			attended = append(attended, passed)
		}
		passed += f.again
	}
	var want []time.Duration
	for at := o.NodeMonitorGracePeriod; at < 2*o.NodeMonitorGracePeriod; at += o.NodeMonitorPeriod {
		want = append(want, at)
	}
	if !slices.Equal(attended, want) {
		t.Errorf("attended to after %v, want %v", attended, want)
	}
}

func TestWhatIsWrittenAboutASilentNodeIsNoSignOfLife(t *testing.T) {
	created := metav1.NewTime(time.Unix(1000, 0))
	for _, ready := range []corev1.ConditionStatus{"", corev1.ConditionTrue} {
		node := nodeWith("n", ready)
		node.CreationTimestamp = created
		now := time.Unix(2000, 0)
		h := newHealth(see(node, nil), now)
		later := now.Add(time.Hour)
		if h.silentIn(Options{NodeMonitorGracePeriod: 50 * time.Second, NodeStartupGracePeriod: time.Minute}, later) > 0 {
			t.Fatal("not silent after an hour")
		}
		for _, c := range conditionsToTurn(node, later) {
			if old := nodestate.Condition(node, c.Type); old != nil {
				*old = c
			} else {
				node.Status.Conditions = append(node.Status.Conditions, c)
			}
		}
		h.look(see(node, nil), later)
		if !h.alive.Equal(now) {
			t.Errorf("Ready was %q: turning it Unknown counts as a sign of life", ready)
		}
	}
}

func TestAReadyNodeLosesItsNoExecuteTaintAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 5)
		w.run(time.Minute)
		kill(machines[:1])
		w.run(2 * time.Minute)
		if w.noExecutes() != 1 {
			t.Fatalf("%d nodes have a NoExecute taint, want the dead one", w.noExecutes())
		}
		machines[0].dead = false
		w.run(beat + 5*time.Second)
		if w.noExecutes() != 0 || w.ready() != 5 {
			t.Errorf("%d nodes have a NoExecute taint and %d are ready; want 0 and 5", w.noExecutes(), w.ready())
		}
	})
}

func TestNodesAreTaintedNoExecuteOneInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 10)
		w.run(time.Minute)
		kill(machines[:5]) // half, less than 55 %
		w.run(3 * time.Minute)
		if len(w.order) != 5 {
			t.Fatalf("tainted %v, want five", w.order)
		}
		for i := 1; i < len(w.order); i++ {
			if apart := w.tainted[w.order[i]] - w.tainted[w.order[i-1]]; apart < 10*time.Second || apart > 11*time.Second {
				t.Errorf("%s and %s were tainted %s apart, want 10 s", w.order[i-1], w.order[i], apart)
			}
		}
	})
}

func TestAHigherRateIsNotHeldUpByTheMonitorPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, with(func(o *Options) { o.NodeEvictionRate = 1 }))
		machines := w.add("a", 10)
		w.run(time.Minute)
		kill(machines[:5])
		w.run(time.Minute)
		if len(w.order) != 5 {
			t.Fatalf("tainted %v, want five", w.order)
		}
		for i := 1; i < len(w.order); i++ {
			if apart := w.tainted[w.order[i]] - w.tainted[w.order[i-1]]; apart != time.Second {
				t.Errorf("%s and %s were tainted %s apart, want 1 s", w.order[i-1], w.order[i], apart)
			}
		}
	})
}

func TestANoExecuteTaintThatSomebodyTookAwayComesBackAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 10)
		w.run(time.Minute)
		kill(machines[:2])
		w.run(3 * time.Minute)
		for _, m := range machines[:2] {
			m.node.Spec.Taints = nil
		}
		w.order = nil
		w.run(time.Minute)
		if len(w.order) != 2 || w.tainted[w.order[1]]-w.tainted[w.order[0]] < 10*time.Second {
			t.Errorf("tainted %v again at %v; want both, 10 s apart", w.order, w.tainted)
		}
	})
}

func TestAGrantThatWasNotUsedEndsWhenTheNodeIsReady(t *testing.T) {
	o, err := Defaults().complete()
	if err != nil {
		t.Fatal(err)
	}
	m, now := newMonitor(o), time.Unix(1000, 0)
	look := func(ready corev1.ConditionStatus) noExecute {
		now = now.Add(time.Second)
		heartbeat := now
		m.look(slices.Values([]sighting{
			{name: "a", ready: ready, heartbeat: heartbeat}, {name: "b", ready: corev1.ConditionTrue, heartbeat: heartbeat},
		}), true, now)
		return m.mode("a")
	}
	for i, step := range []struct {
		ready corev1.ConditionStatus
		want  noExecute
	}{
		{corev1.ConditionTrue, holdNoExecute},
		{corev1.ConditionFalse, setNoExecute},
		{corev1.ConditionFalse, setNoExecute}, // the write has failed
		{corev1.ConditionTrue, holdNoExecute},
		{corev1.ConditionFalse, holdNoExecute}, // until the next token
	} {
		if got := look(step.ready); got != step.want {
			t.Fatalf("step %d, Ready %s: mode %d, want %d", i, step.ready, got, step.want)
		}
	}
}

func TestWhoHasBeenDownLongestIsTaintedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, with(func(o *Options) { o.NodeEvictionRate = 0.01 }))
		machines := w.add("a", 20)
		w.run(time.Minute)
		for _, i := range []int{0, 5, 3, 4} { // the first has the token that there is, the others wait for the next
			kill(machines[i : i+1])
			w.run(2 * beat)
		}
		w.run(10 * time.Minute)
		if want := []string{"a-00", "a-05", "a-03", "a-04"}; !slices.Equal(w.order, want) {
			t.Errorf("tainted %v, want %v", w.order, want)
		}
	})
}

func TestASmallZoneThatIsPartlyDownGetsNoNoExecuteTaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 5)
		w.run(time.Minute)
		kill(machines[:3]) // 60 %
		w.run(time.Hour)
		if w.ready() != 2 {
			t.Fatalf("%d nodes are ready, want 2", w.ready())
		}
		if len(w.tainted) != 0 {
			t.Errorf("tainted %v, want none", w.tainted)
		}
	})
}

func TestALargeZoneThatIsPartlyDownGetsNoExecuteTaintsOneInAHundredSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 60)
		w.run(time.Minute)
		for _, m := range machines { // all at one time, so that all fall silent at one look
			m.next = machines[0].next
		}
		kill(machines[:33]) // 55 %
		w.run(11 * time.Minute)
		if n := len(w.order); n < 6 || n > 7 {
			t.Fatalf("tainted %d in 10 minutes, want one in 100 s: %v", n, w.order)
		}
		for i := 1; i < len(w.order); i++ {
			if apart := w.tainted[w.order[i]] - w.tainted[w.order[i-1]]; apart < 100*time.Second {
				t.Errorf("%s and %s were tainted %s apart, want 100 s", w.order[i-1], w.order[i], apart)
			}
		}
	})
}

func TestAZoneThatIsDownWholeIsTaintedAtTheUsualRateWhileAnotherIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		w.add("a", 3)
		machines := w.add("b", 3)
		w.run(time.Minute)
		kill(machines)
		w.run(3 * time.Minute)
		if len(w.order) != 3 {
			t.Errorf("tainted %v, want all of zone b", w.order)
		}
	})
}

func TestWithAllZonesDownNothingIsTaintedAndTaintsAreLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 4)
		machines = append(machines, w.add("b", 4)...)
		w.run(time.Minute)
		kill(machines[:1])
		w.run(2 * time.Minute)
		if w.noExecutes() != 1 {
			t.Fatalf("%d nodes have a NoExecute taint, want the dead one", w.noExecutes())
		}
		kill(machines)
		w.run(time.Hour)
		if w.ready() != 0 || w.noExecutes() != 0 {
			t.Fatalf("%d nodes are ready, %d have a NoExecute taint; want none", w.ready(), w.noExecutes())
		}
		for _, m := range machines {
			if !hasTaint(m.node.Spec.Taints, corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule) {
				t.Errorf("%s has lost its NoSchedule taint: %v", m.node.Name, texts(m.node.Spec.Taints))
			}
		}

		// They come back one after the other. The one that stays dead is tainted
		// again in the end, and nobody else keeps a taint.
		w.order = nil
		for _, m := range machines[1:] {
			m.dead = false
			w.run(2 * time.Second)
		}
		w.run(2 * time.Minute)
		if w.ready() != 7 || w.noExecutes() != 1 || !hasNoExecute(machines[0].node.Spec.Taints) {
			t.Errorf("%d ready, tainted in the order %v; want 7, and a-00 alone tainted in the end", w.ready(), w.order)
		}
	})
}

func TestTheWrongNoExecuteTaintIsSwappedAtOnce(t *testing.T) {
	node := nodeWith("n", corev1.ConditionFalse, taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute))
	taints, _ := taintsOf(node, holdNoExecute, time.Now())
	want := []string{"node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"}
	if !slices.Equal(texts(taints), want) {
		t.Errorf("taints %v, want %v", texts(taints), want)
	}
}

func TestANoExecuteTaintIsNotSetWithoutLeave(t *testing.T) {
	node := nodeWith("n", corev1.ConditionUnknown)
	for mode, want := range map[noExecute]bool{holdNoExecute: false, setNoExecute: true, liftNoExecute: false} {
		taints, _ := taintsOf(node, mode, time.Now())
		if hasNoExecute(taints) != want {
			t.Errorf("mode %d: taints %v, want NoExecute: %t", mode, texts(taints), want)
		}
	}
}

func TestNobodyIsSilentWhileNobodyLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		w.add("a", 5)
		w.run(time.Minute)
		time.Sleep(10 * time.Minute) // nothing of this process runs, kubelets wait for the server
		for _, m := range w.machines {
			m.next = time.Now().Add(40 * time.Second) // and take their time to come back
		}
		w.run(5 * time.Minute)
		if len(w.turned) != 0 {
			t.Errorf("turned %v, want none", w.turned)
		}
	})
}

func TestANodeOfTheSameNameIsAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 3)
		w.run(time.Minute)
		kill(machines[:1])
		w.run(45 * time.Second)
		machines[0].node.UID = "another"
		w.look = time.Now()
		w.run(0)
		if len(w.last.gone) != 1 || w.last.gone[0] != (nodeID{"a-00", "a-00"}) || len(w.last.appeared) != 1 || w.last.appeared[0].uid != "another" {
			t.Errorf("gone %v, appeared %v; want the old and the new a-00", w.last.gone, w.last.appeared)
		}
		w.run(45 * time.Second)
		if len(w.turned) != 0 {
			t.Errorf("turned %v: the new node inherits the silence of the old one", w.turned)
		}
	})
}

func TestNodesThatAreGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		w.add("a", 2)
		w.run(time.Second)
		w.machines = nil
		w.run(10 * time.Second)
		if len(w.monitor.nodes) != 0 || len(w.monitor.zones) != 0 {
			t.Errorf("%d nodes and %d zones are remembered, want none", len(w.monitor.nodes), len(w.monitor.zones))
		}
	})
}

func TestExcludedNodesDoNotCountForTheStateOfTheirZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Defaults())
		machines := w.add("a", 6)
		for _, m := range machines[:3] {
			m.node.Labels[labelExcluded] = ""
		}
		w.run(time.Minute)
		kill(machines[:4]) // of those that count, one of three
		w.run(3 * time.Minute)
		if len(w.order) != 4 {
			t.Errorf("tainted %v, want the four dead ones: their zone is not partly down", w.order)
		}
	})
}

func TestZonesArePartlyDownWithThreeAndMoreThanHalfNotReady(t *testing.T) {
	for _, c := range []struct {
		ready, notReady int
		want            zoneState
	}{
		{0, 0, zoneNormal},
		{1, 0, zoneNormal},
		{0, 1, zoneDown},
		{0, 100, zoneDown},
		{1, 2, zoneNormal}, // two are no pattern
		{2, 3, zonePartlyDown},
		{3, 3, zoneNormal},
		{9, 11, zonePartlyDown}, // 55 % exactly
		{46, 55, zoneNormal},    // 54.5 %
		{45, 55, zonePartlyDown},
	} {
		if got := stateOf(c.ready, c.notReady, 0.55); got != c.want {
			t.Errorf("stateOf(%d ready, %d not) = %d, want %d", c.ready, c.notReady, got, c.want)
		}
	}
}

func TestRatesOfZones(t *testing.T) {
	o, err := Defaults().complete()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state zoneState
		size  int
		want  float64
	}{
		{zoneNormal, 10, 0.1}, {zoneNormal, 1000, 0.1},
		{zonePartlyDown, 50, 0}, {zonePartlyDown, 51, 0.01},
		{zoneDown, 10, 0.1}, {zoneDown, 1000, 0.1},
	} {
		if got := o.rate(c.state, c.size); got != c.want {
			t.Errorf("rate(%d, %d nodes) = %g, want %g", c.state, c.size, got, c.want)
		}
	}
}

// However a zone's rate changes, it gives no more than the highest allows, and
// nothing while it is none.
func TestABucketNeverGivesMoreThanItsRate(t *testing.T) {
	rates := []float64{0.1, 0.1, 0, 0.01, 0.1, 0, 0.1}
	now := time.Unix(0, 0)
	b := bucket{rate: 0.1, tokens: 1, at: now}
	var last time.Time
	for step := range 10_000 {
		now = now.Add(700 * time.Millisecond)
		rate := rates[step/97%len(rates)]
		b.set(rate, now)
		if !b.take() {
			continue
		}
		if rate == 0 {
			t.Fatalf("step %d: a token at no rate at all", step)
		}
		if !last.IsZero() && now.Sub(last) < 10*time.Second {
			t.Fatalf("step %d: two tokens %s apart", step, now.Sub(last))
		}
		last = now
	}
	if last.IsZero() {
		t.Fatal("no token was ever given")
	}
}

func TestZonesAreNamedByRegionAndZoneTheBetaLabelsFirst(t *testing.T) {
	for _, c := range []struct {
		labels map[string]string
		want   string
	}{
		{nil, ""},
		{map[string]string{corev1.LabelTopologyZone: "a"}, "/a"},
		{map[string]string{corev1.LabelTopologyZone: "a", corev1.LabelTopologyRegion: "eu"}, "eu/a"},
		{map[string]string{corev1.LabelTopologyZone: "a", corev1.LabelFailureDomainBetaZone: "b"}, "/b"},
		{map[string]string{corev1.LabelTopologyRegion: "eu"}, "eu/"},
	} {
		if got := zoneOf(c.labels); got != c.want {
			t.Errorf("zoneOf(%v) = %q, want %q", c.labels, got, c.want)
		}
	}
}

// A process that is not connected knows nothing of nodes, and can write nothing.
func TestNobodyIsLookedAtWithoutAConnection(t *testing.T) {
	o, err := Defaults().complete()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	r := &reconciler{
		nodes: cache.Informer[*corev1.Node](mgr), leases: cache.Informer[*coordinationv1.Lease](mgr, cache.InNamespace(corev1.NamespaceNodeLease)),
		monitor: newMonitor(o), seen: seen{sightings: map[string]sighting{}},
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.InformerFactory().Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(time.Millisecond); r.nodes.Trouble() == nil || r.leases.Trouble() == nil; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the informers do not notice that nobody answers")
		}
	}
	if again := r.look(time.Now()); again != o.NodeMonitorPeriod {
		t.Errorf("the next look is in %s, want %s", again, o.NodeMonitorPeriod)
	}
	if r.monitor.looks != 0 {
		t.Error("the monitor was told that there are no nodes")
	}
}

func BenchmarkLookAtFiveThousandNodes(b *testing.B) {
	o, err := Defaults().complete()
	if err != nil {
		b.Fatal(err)
	}
	m, now := newMonitor(o), time.Unix(0, 0)
	nodes := make([]*corev1.Node, 5000)
	for i := range nodes {
		nodes[i] = nodeWith(fmt.Sprintf("node-%04d", i), corev1.ConditionTrue)
	}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(o.NodeMonitorPeriod)
		m.look(func(yield func(sighting) bool) {
			for _, node := range nodes {
				nodestate.Condition(node, corev1.NodeReady).LastHeartbeatTime.Time = now
				if !yield(see(node, nil)) {
					return
				}
			}
		}, true, now)
	}
}
