// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

var (
	maps1   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	things1 = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}
	things2 = schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Thing"}
	rooms1  = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Room"} // cluster-scoped
)

// seen is an object as an informer shows it.
type seen struct {
	kind schema.GroupVersionKind
	object.Meta
}

func (s seen) String() string {
	return fmt.Sprintf("%s %s (%s, at %q, owners %v, finalizers %v, deleting %t)", s.kind.Kind, s.Key, s.UID, s.Version, s.OwnerReferences, s.Finalizers, s.Deleting())
}

// model is a graph written down as what it was told, in which everything is found
// by looking through all of it.
type model struct {
	objects map[types.UID]seen
	gone    map[types.UID]seen // deletions that were seen, of objects that are named
	refuted map[reference]bool
}

// named returns who names whom.
func (m *model) named() map[reference]map[types.UID]bool {
	all := map[reference]map[types.UID]bool{}
	for uid, o := range m.objects {
		for _, ref := range o.OwnerReferences {
			r := referenceOf(ref, o.Namespace)
			if all[r] == nil {
				all[r] = map[types.UID]bool{}
			}
			all[r][uid] = all[r][uid] || blocks(&ref)
		}
	}
	return all
}

// prune drops what nobody speaks of any more.
func (m *model) prune() {
	named := m.named()
	uids := map[types.UID]bool{}
	for r := range named {
		uids[r.uid] = true
	}
	maps.DeleteFunc(m.gone, func(uid types.UID, _ seen) bool { return !uids[uid] })
	maps.DeleteFunc(m.refuted, func(r reference, _ bool) bool { return named[r] == nil })
}

func (m *model) matches(o seen, r reference) bool {
	return o.Name == r.name && sameKind(kindOf(o.kind), r.kind) && (o.Namespace == "" || o.Namespace == r.namespace)
}

func (m *model) verdict(r reference) verdict {
	if o, ok := m.objects[r.uid]; ok && m.matches(o, r) {
		if stateOf(&o.Meta).has(foreground) {
			return waiting
		}
		return solid
	}
	if o, ok := m.gone[r.uid]; ok && m.matches(o, r) || m.refuted[r] {
		return absent
	}
	return unsure
}

// waitsFor returns the objects that wait for uid to go before they go.
func (m *model) waitsFor(uid types.UID) []types.UID {
	var owners []types.UID
	o := m.objects[uid]
	for _, ref := range o.OwnerReferences {
		if blocks(&ref) && m.verdict(referenceOf(ref, o.Namespace)) == waiting {
			owners = append(owners, ref.UID)
		}
	}
	return owners
}

func (m *model) blocked(uid types.UID) bool {
	for other := range m.objects {
		if slices.Contains(m.waitsFor(other), uid) {
			return true
		}
	}
	return false
}

// circle returns the owners that wait for uid and for which uid waits.
func (m *model) circle(uid types.UID) []types.UID {
	var owners []types.UID
	for _, owner := range m.waitsFor(uid) {
		reached := map[types.UID]bool{}
		for next := []types.UID{owner}; len(next) > 0; {
			at := next[0]
			next = next[1:]
			if !reached[at] {
				reached[at] = true
				next = append(next, m.waitsFor(at)...)
			}
		}
		if reached[uid] && !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	slices.Sort(owners)
	return owners
}

// fact is a reason to look at one of some nodes.
type fact struct {
	what  string
	about string
	who   types.UID
}

// facts returns every reason that there is to look at a node.
func (m *model) facts() map[fact][]types.UID {
	all := map[fact][]types.UID{}
	add := func(what string, who types.UID, about any) {
		all[fact{what, fmt.Sprint(about), who}] = []types.UID{who}
	}
	for r, dependents := range m.named() {
		owner, isSeen := m.objects[r.uid]
		_, isGone := m.gone[r.uid]
		if !isSeen && !isGone && !m.refuted[r] {
			add("to be verified", r.uid, r)
		}
		for uid := range dependents {
			v := m.verdict(r)
			dependent := m.objects[uid]
			if !dependent.Deleting() {
				if v == absent || v == waiting {
					add("owner", uid, fmt.Sprint(v, r))
				}
				if v == unsure && (isSeen || isGone) {
					add("named wrongly", uid, r)
				}
			}
			if isSeen && stateOf(&owner.Meta).has(orphaning) {
				all[fact{"to be let go", string(uid), r.uid}] = []types.UID{r.uid}
			}
		}
	}
	for uid, o := range m.objects {
		switch s := stateOf(&o.Meta); {
		case s.has(orphaning):
			add("orphans", uid, "")
		case s.has(foreground):
			if !m.blocked(uid) {
				add("waits for nobody", uid, "")
			}
			for _, owner := range m.circle(uid) {
				// Each member of the circle finds it.
				all[fact{"circle", string(owner), uid}] = m.members(uid)
			}
		}
	}
	return all
}

// members returns all who are in a circle with uid.
func (m *model) members(uid types.UID) []types.UID {
	var all []types.UID
	for other := range m.objects {
		if len(m.circle(other)) > 0 {
			all = append(all, other)
		}
	}
	return all
}

// check compares a graph with the model.
func (m *model) check(t *rapid.T, g *graph) {
	named := m.named()
	for r, dependents := range named {
		c := g.claims[r]
		if c == nil {
			t.Fatalf("no claim for %v", r)
		}
		have := map[types.UID]bool{}
		blocking := 0
		for i, d := range c.dependents {
			e := d.edgeTo(c)
			if e == nil || int(e.place) != i {
				t.Fatalf("%s is at %d of the claim %v, and its edge says %v", d.uid, i, r, e)
			}
			have[d.uid] = e.blocking
			if e.blocking {
				blocking++
			}
		}
		if !maps.Equal(have, dependents) {
			t.Fatalf("the dependents of %v are %v, want %v", r, have, dependents)
		}
		if int(c.blocking) != blocking {
			t.Fatalf("%d block %v, counted %d", blocking, r, c.blocking)
		}
		if c.owner.claims[c.place] != c || c.owner != g.nodes[r.uid] {
			t.Fatalf("the claim %v is not where it says", r)
		}
		if got, want := g.verdict(r), m.verdict(r); got != want {
			t.Fatalf("the verdict on %v is %d, want %d", r, got, want)
		}
	}
	if len(g.claims) != len(named) {
		t.Fatalf("%d claims, want %d", len(g.claims), len(named))
	}
	nodes := map[types.UID]bool{}
	for r := range named {
		nodes[r.uid] = true
	}
	for uid, o := range m.objects {
		nodes[uid] = true
		v, _ := g.view(uid)
		if v.state&^behind != stateOf(&o.Meta) || v.key != o.Key || !sameKind(v.kind, kindOf(o.kind)) {
			t.Fatalf("%s is %v, want %v", uid, v, o)
		}
		if stateOf(&o.Meta).has(foreground) && v.blocked != m.blocked(uid) {
			t.Fatalf("%s is blocked: %t, want %t", uid, v.blocked, m.blocked(uid))
		}
		circle := g.circle(uid)
		slices.Sort(circle)
		if circle = slices.Compact(circle); !slices.Equal(circle, m.circle(uid)) {
			t.Fatalf("%s is in a circle with %v, want %v", uid, circle, m.circle(uid))
		}
	}
	if len(g.nodes) != len(nodes) {
		t.Fatalf("%d nodes, want %d", len(g.nodes), len(nodes))
	}
}

// Whatever is told in whatever order, the graph is what a naive reading of all that
// was told comes to; and each reason to look at a node that was not there before has
// the node, or one that finds the same, looked at.
func TestTheGraphIsWhatItWasTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGraph()
		m := &model{objects: map[types.UID]seen{}, gone: map[types.UID]seen{}, refuted: map[reference]bool{}}
		uids := []types.UID{"a", "b", "c", "d", "e"}
		// A UID has one kind and one key for ever.
		identity := map[types.UID]seen{}
		for _, uid := range uids {
			o := seen{
				kind: rapid.SampledFrom([]schema.GroupVersionKind{maps1, things1, rooms1}).Draw(t, "kind"),
				Meta: object.Meta{UID: uid, Key: object.Key{Namespace: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "namespace"), Name: "of-" + string(uid)}},
			}
			if o.kind == rooms1 {
				o.Namespace = ""
			}
			identity[uid] = o
		}
		reference := rapid.Custom(func(t *rapid.T) metav1.OwnerReference {
			owner := identity[rapid.SampledFrom(uids).Draw(t, "owner")]
			ref := metav1.OwnerReference{UID: owner.UID, Name: owner.Name, Kind: owner.kind.Kind, APIVersion: owner.kind.GroupVersion().String()}
			if owner.kind == things1 && rapid.IntRange(0, 3).Draw(t, "another version") == 0 {
				ref.APIVersion = things2.GroupVersion().String()
			}
			if rapid.IntRange(0, 5).Draw(t, "wrong") == 0 {
				ref.Name = "wrong"
			}
			if rapid.Bool().Draw(t, "blocking") {
				ref.BlockOwnerDeletion = new(true)
			}
			return ref
		})
		var facts map[fact][]types.UID
		settle := func() {
			m.prune()
			m.check(t, g)
			due, _ := g.take()
			now := m.facts()
			for f, who := range now {
				if _, old := facts[f]; !old && !slices.ContainsFunc(who, func(uid types.UID) bool { return slices.Contains(due, uid) }) {
					t.Fatalf("%s %s %s: none of %v is looked at, but %v", f.who, f.what, f.about, who, due)
				}
			}
			facts = now
		}
		t.Repeat(map[string]func(*rapid.T){
			"observe": func(t *rapid.T) {
				uid := rapid.SampledFrom(uids).Draw(t, "uid")
				o := identity[uid]
				if before, ok := m.objects[uid]; ok {
					o = before
				}
				o.OwnerReferences = rapid.SliceOfN(reference, 0, 3).Draw(t, "owners")
				if o.Deleting() || rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
					o.Deleted = time.Unix(1, 0)
				}
				o.Finalizers = rapid.SliceOfDistinct(rapid.SampledFrom([]string{
					metav1.FinalizerDeleteDependents, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "other",
				}), rapid.ID).Draw(t, "finalizers")
				m.objects[uid] = o
				delete(m.gone, uid)
				for r := range m.refuted {
					if r.uid == uid && m.matches(o, r) {
						delete(m.refuted, r)
					}
				}
				g.observe(kindOf(o.kind), &o.Meta)
				settle()
			},
			"remove": func(t *rapid.T) {
				uid := rapid.SampledFrom(uids).Draw(t, "uid")
				certain := rapid.Bool().Draw(t, "certain")
				g.remove(kindOf(identity[uid].kind), uid, certain)
				if o, ok := m.objects[uid]; ok {
					m.remove(o, certain)
				}
				settle()
			},
			"forget": func(*rapid.T) {
				g.forget(kindOf(things2), func(object.Key, types.UID) bool { return false })
				for _, o := range m.objects {
					if o.kind == things1 {
						m.remove(o, false)
					}
				}
				settle()
			},
			"refute": func(t *rapid.T) {
				r := referenceOf(reference.Draw(t, "reference"), rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "namespace"))
				g.refute(r)
				if o, ok := m.objects[r.uid]; !ok || !m.matches(o, r) {
					m.refuted[r] = true
				}
				settle()
			},
			"expect": func(t *rapid.T) {
				uid := rapid.SampledFrom(uids).Draw(t, "uid")
				g.expect(uid)
				if rapid.Bool().Draw(t, "in vain") {
					g.unexpect(uid)
				}
				settle()
			},
		})
		for _, o := range m.objects {
			g.remove(kindOf(o.kind), o.UID, true)
		}
		if len(g.nodes) != 0 || len(g.claims) != 0 {
			t.Fatalf("without objects there are %d nodes and %d claims", len(g.nodes), len(g.claims))
		}
	})
}

func (m *model) remove(o seen, certain bool) {
	delete(m.objects, o.UID)
	if certain {
		m.gone[o.UID] = o
		return
	}
	maps.DeleteFunc(m.refuted, func(r reference, _ bool) bool { return r.uid == o.UID })
}
