// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// model is a cluster with one DaemonSet. The controller sees what earlier runs of it wrote, and
// everything else as it is.
type model struct {
	t      *rapid.T
	set    *appsv1.DaemonSet
	places []place
	pods   []*pod
	now    time.Time
	failed backoff
	made   int
	// revision counts the templates. bad ones never get ready.
	revision int
	since    time.Time
	bad      map[string]bool
	// hasty Pods get ready right before they are deleted.
	hasty bool
}

func newModel(t *rapid.T) *model {
	surge := rapid.Int32Range(0, 2).Draw(t, "maxSurge")
	unavailable := rapid.Int32Range(0, 3).Draw(t, "maxUnavailable")
	if surge > 0 {
		unavailable = 0 // the API server wants it so
	}
	m := &model{t: t, now: now, since: now, bad: map[string]bool{}}
	m.set = agent(limits(intstr.FromInt32(surge), intstr.FromInt32(unavailable)), func(set *appsv1.DaemonSet) {
		set.Spec.MinReadySeconds = int32(rapid.SampledFrom([]int{0, 10}).Draw(t, "minReadySeconds"))
	})
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		m.places = append(m.places, place{fit: fit{run: true, stay: true}, name: fmt.Sprint("n", i), uid: types.UID(fmt.Sprint("n", i))})
	}
	return m
}

func (m *model) hash() string { return fmt.Sprint("r", m.revision) }

func (m *model) view() view {
	var seen []*pod
	for _, p := range m.pods {
		copied := *p
		seen = append(seen, &copied)
	}
	return view{
		set: m.set, revision: revision{hash: m.hash(), since: m.since}, places: slices.Clone(m.places), pods: byNode(seen),
		failed: &m.failed, burst: 250, now: m.now,
	}
}

// run is a run of the controller that is killed before one of its writes, or at none of them. It
// checks each write, and reports whether there was one.
func (m *model) run(killedAt int) bool {
	v := m.view()
	p := decide(v)
	writes := 0
	killed := func() bool {
		writes++
		return writes == killedAt
	}
	for _, node := range p.create {
		if killed() {
			return m.restart()
		}
		m.made++
		m.pods = append(m.pods, &pod{
			namespace: "ops", name: fmt.Sprint("p", m.made), uid: types.UID(fmt.Sprint("p", m.made)), node: node,
			created: m.now, phase: corev1.PodPending, hash: m.hash(),
		})
		m.checkCreate(node)
	}
	for _, one := range p.remove {
		if killed() {
			return m.restart()
		}
		if one.why == failed {
			m.failed.note(one.node, m.now)
		}
		is := m.pods[slices.IndexFunc(m.pods, func(p *pod) bool { return p.name == one.pod.name })]
		if m.hasty {
			m.getReady(is)
		}
		if one.why == broken && *is != *one.pod {
			continue // the server refuses to delete it
		}
		m.checkDelete(&v, one.why, is)
		m.remove(is.name)
	}
	return writes > 0
}

// restart is a new process of the controller, which remembers nothing.
func (m *model) restart() bool {
	m.failed = backoff{}
	return true
}

// remove deletes a Pod as the API server does: at once if it has ended or is not bound.
func (m *model) remove(name string) {
	m.pods = slices.DeleteFunc(m.pods, func(p *pod) bool { return p.name == name && (p.ended() || !p.bound) })
	for _, p := range m.pods {
		if p.name == name {
			p.deleting = true
		}
	}
}

// on returns the Pods of a node that are neither being deleted nor ended.
func (m *model) on(node string) (all []*pod) {
	for _, p := range m.pods {
		if p.node == node && !p.deleting && !p.ended() {
			all = append(all, p)
		}
	}
	return all
}

func (m *model) limits() podlimits.Limits {
	v := m.view()
	l, err := podlimits.DaemonSet(m.set, v.wanted())
	if err != nil {
		m.t.Fatal(err)
	}
	return l
}

// checkCreate fails if a node has more Pods than it may.
func (m *model) checkCreate(node string) {
	on := m.on(node)
	switch {
	case len(on) > 2, len(on) == 2 && (m.limits().Surge == 0 || on[0].hash == on[1].hash):
		m.t.Fatalf("node %s has %d Pods", node, len(on))
	case !m.fits(node):
		m.t.Fatalf("a Pod was created on node %s, which does not fit", node)
	}
}

func (m *model) fits(node string) bool {
	return slices.ContainsFunc(m.places, func(at place) bool { return at.name == node && at.run })
}

// checkDelete fails if a rollout takes away more than it may.
func (m *model) checkDelete(v *view, why cause, victim *pod) {
	if why != outdated && why != broken || !victim.ready || !m.fits(victim.node) {
		return
	}
	l := m.limits()
	if l.Surge > 0 {
		if !slices.ContainsFunc(m.on(victim.node), func(p *pod) bool { return p.hash == m.hash() && v.isAvailable(p) }) {
			m.t.Fatalf("the ready Pod %s goes, and no new one is available on %s", victim.name, victim.node)
		}
		return
	}
	without := 0
	for _, at := range m.places {
		if at.run && at.name != victim.node && !slices.ContainsFunc(m.on(at.name), func(p *pod) bool { return p.ready }) && at.unready.IsZero() {
			without++
		}
	}
	if without >= int(l.Unavailable) {
		m.t.Fatalf("the ready Pod %s goes, %d other nodes have none, and maxUnavailable is %d", victim.name, without, l.Unavailable)
	}
}

// kubelets moves Pods on: those that are chosen are bound, get ready, or are removed.
func (m *model) kubelets(chosen func() bool) {
	var stay []*pod
	for _, p := range m.pods {
		switch {
		case !chosen():
		case p.deleting:
			continue
		case p.ended():
		case !p.bound:
			p.bound, p.phase = true, corev1.PodRunning
		default:
			m.getReady(p)
		}
		stay = append(stay, p)
	}
	m.pods = stay
}

// getReady makes a Pod ready if it runs and its template is good.
func (m *model) getReady(p *pod) {
	if p.bound && !p.ended() && !p.ready && !m.bad[p.hash] {
		p.ready, p.readySince = true, m.now
	}
}

// settle lets everything come to rest, and reports whether it did.
func (m *model) settle() bool {
	for range 400 {
		wrote := m.run(0)
		before := len(m.pods)
		m.kubelets(func() bool { return true })
		m.now = m.now.Add(time.Minute)
		quiet := !wrote && before == len(m.pods)
		for _, p := range m.pods {
			quiet = quiet && p.bound && !p.ended() && (p.ready || m.bad[p.hash]) && m.now.Sub(p.readySince) > 2*time.Minute
		}
		if quiet {
			return true
		}
	}
	return false
}

func (m *model) template(bad bool) {
	m.revision++
	m.since = m.now
	m.bad[m.hash()] = bad
	m.set.Generation++
}

// TestNodesAndRolloutsKeepToTheirLimitsInAnyOrderOfEvents changes templates and nodes, lets Pods
// fail, and kills the controller, at any moment. Each write of the controller is checked.
func TestNodesAndRolloutsKeepToTheirLimitsInAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		if !m.settle() {
			t.Fatal("the first Pods do not come to rest")
		}
		somePod := func(t *rapid.T) *pod {
			if len(m.pods) == 0 {
				t.Skip("no Pod")
			}
			return rapid.SampledFrom(m.pods).Draw(t, "pod")
		}
		someNode := func(t *rapid.T) *place { return &m.places[rapid.IntRange(0, len(m.places)-1).Draw(t, "node")] }
		t.Repeat(map[string]func(*rapid.T){
			"":                    func(t *rapid.T) { m.t = t },
			"the controller runs": func(*rapid.T) { m.run(0) },
			"a step of all": func(*rapid.T) {
				m.run(0)
				m.kubelets(func() bool { return true })
				m.run(0)
			},
			"Pods get ready before their deletes": func(*rapid.T) {
				m.hasty = true
				m.run(0)
				m.hasty = false
			},
			"it is killed": func(t *rapid.T) { m.run(rapid.IntRange(1, 4).Draw(t, "write")) },
			"kubelets":     func(t *rapid.T) { m.kubelets(func() bool { return rapid.Bool().Draw(t, "chosen") }) },
			"time": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			},
			"a template":             func(*rapid.T) { m.template(false) },
			"a template that is bad": func(*rapid.T) { m.template(true) },
			"a Pod fails":            func(t *rapid.T) { p := somePod(t); p.phase, p.ready = corev1.PodFailed, false },
			"a Pod is not ready":     func(t *rapid.T) { somePod(t).ready = false },
			"a taint": func(t *rapid.T) {
				someNode(t).fit = rapid.SampledFrom([]fit{{}, {stay: true}, {run: true, stay: true}}).Draw(t, "fit")
			},
			"a user deletes a Pod": func(t *rapid.T) { m.remove(somePod(t).name) },
		})
		m.template(false)
		if !m.settle() {
			t.Fatal("it never comes to rest")
		}
		for _, at := range m.places {
			on := m.on(at.name)
			switch {
			case at.run && (len(on) != 1 || on[0].hash != m.hash() || !on[0].ready):
				t.Fatalf("node %s has %d Pods at the end, want one of the last template that is ready", at.name, len(on))
			case !at.stay && len(on) > 0:
				t.Fatalf("node %s, which does not fit, has %d Pods", at.name, len(on))
			}
		}
	})
}
