// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

var ghosts1 = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Ghost"} // not served

// place is where an object is found.
type place struct {
	kind schema.GroupKind
	object.Key
}

// simulation is an API server with informers that lag behind it, and a collector.
// Whatever happens happens in one goroutine, in an order that is drawn.
type simulation struct {
	t       *rapid.T
	version int
	objects map[place]seen
	shows   map[place]seen       // what the informers show
	pending map[place][]delivery // what they do not show yet, in order

	collector *collector
	due       map[types.UID]bool
	later     map[types.UID]bool
	faults    bool
}

// delivery is a change that an informer has not shown.
type delivery struct {
	seen
	deleted bool
}

func newSimulation() *simulation {
	s := &simulation{objects: map[place]seen{}}
	s.restart()
	return s
}

// restart is a new collector, whose informers begin with what there is.
func (s *simulation) restart() {
	s.due, s.later = map[types.UID]bool{}, map[types.UID]bool{}
	s.pending, s.shows = map[place][]delivery{}, maps.Clone(s.objects)
	s.collector = &collector{
		world: s, graph: newGraph(),
		add: func(_ workqueue.Cause, uids []types.UID) {
			for _, uid := range uids {
				s.due[uid] = true
			}
		},
		report: func(misplacement) {},
		each: func(n int, do func(int)) {
			for i := range n {
				do(i)
			}
		},
	}
	for _, at := range sorted(s.shows) {
		o := s.shows[at]
		s.collector.tell(workqueue.Cause{}, func(g *graph) { g.observe(kindOf(o.kind), &o.Meta) })
	}
}

// sorted makes what follows from a map the same each time.
func sorted[V any](m map[place]V) []place {
	return slices.SortedFunc(maps.Keys(m), func(a, b place) int {
		return slices.Compare([]string{a.kind.Kind, a.Namespace, a.Name}, []string{b.kind.Kind, b.Namespace, b.Name})
	})
}

func placeOf(o seen) place { return place{o.kind.GroupKind(), o.Key} }

// store writes an object, or removes it when nothing holds it any more.
func (s *simulation) store(o seen) {
	at := placeOf(o)
	s.version++
	o.Version = object.Version(fmt.Sprint(s.version))
	remove := o.Deleting() && len(o.Finalizers) == 0
	if remove {
		delete(s.objects, at)
	} else {
		s.objects[at] = o
	}
	s.pending[at] = append(s.pending[at], delivery{o, remove})
}

// deliver has an informer show what comes next of an object, or, as after a broken
// watch, all at once and without having seen deletions.
func (s *simulation) deliver(at place, relist bool) {
	if relist {
		delete(s.pending, at)
		before, shown := s.shows[at]
		now, exists := s.objects[at]
		if shown && (!exists || before.UID != now.UID) {
			delete(s.shows, at)
			s.collector.tell(workqueue.Cause{}, func(g *graph) { g.remove(kindOf(before.kind), before.UID, false) })
		}
		if exists {
			s.shows[at] = now
			s.collector.tell(workqueue.Cause{}, func(g *graph) { g.observe(kindOf(now.kind), &now.Meta) })
		}
		return
	}
	d := s.pending[at][0]
	if s.pending[at] = s.pending[at][1:]; len(s.pending[at]) == 0 {
		delete(s.pending, at)
	}
	if d.deleted {
		delete(s.shows, at)
		s.collector.tell(workqueue.Cause{}, func(g *graph) { g.remove(kindOf(d.kind), d.UID, true) })
		return
	}
	s.shows[at] = d.seen
	s.collector.tell(workqueue.Cause{}, func(g *graph) { g.observe(kindOf(d.kind), &d.Meta) })
}

// run looks at a node.
func (s *simulation) run(uid types.UID) {
	delete(s.due, uid)
	result, err := s.collector.look(context.Background(), uid)
	if err != nil || result.After > 0 {
		s.later[uid] = true
	}
}

// calm lets everything happen that is still to happen, without faults.
func (s *simulation) calm() {
	s.faults = false
	for range 1000 {
		switch {
		case len(s.pending) > 0:
			s.deliver(sorted(s.pending)[0], false)
		case len(s.due) > 0:
			s.run(slices.Min(slices.Collect(maps.Keys(s.due))))
		case len(s.later) > 0:
			before := s.version
			for _, uid := range slices.Sorted(maps.Keys(s.later)) {
				delete(s.later, uid)
				s.run(uid)
			}
			if before == s.version && len(s.due) == 0 {
				return
			}
		default:
			return
		}
	}
	s.t.Fatalf("it does not come to rest: %v", s.objects)
}

var errFault = errors.New("connection reset")

// fault says whether a request fails, and whether it was carried out nevertheless.
func (s *simulation) fault() (fails, done bool) {
	if !s.faults || rapid.IntRange(0, 4).Draw(s.t, "fault") > 0 {
		return false, false
	}
	return true, rapid.Bool().Draw(s.t, "done")
}

func (s *simulation) resource(k kind) (object.Resource, bool) {
	v := k.Value()
	return object.Resource{Group: v.Group, Version: v.Version, Kind: v.Kind, Namespaced: v.Kind != rooms1.Kind}, v.Kind != ghosts1.Kind
}

func (s *simulation) shown(t target) (object.Meta, bool) {
	o, ok := s.shows[place{t.kind.Value().GroupKind(), t.key}]
	return o.Meta, ok
}

func (s *simulation) find(r object.Resource, key object.Key) (seen, error) {
	o, ok := s.objects[place{r.GroupVersionKind().GroupKind(), key}]
	if !ok {
		return seen{}, apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return o, nil
}

func (s *simulation) get(_ context.Context, r object.Resource, key object.Key) (object.Meta, error) {
	if fails, _ := s.fault(); fails {
		return object.Meta{}, errFault
	}
	o, err := s.find(r, key)
	return o.Meta, err
}

func (s *simulation) delete(_ context.Context, r object.Resource, key object.Key, uid types.UID, version object.Version, policy metav1.DeletionPropagation) error {
	fails, done := s.fault()
	if fails && !done {
		return errFault
	}
	o, err := s.find(r, key)
	if err != nil {
		return err
	}
	if o.UID != uid || version != "" && o.Version != version {
		return apierrors.NewConflict(schema.GroupResource{}, key.Name, errors.New("precondition"))
	}
	if len(o.OwnerReferences) == 0 {
		s.t.Fatalf("%v is deleted and has no owner", o)
	}
	for _, ref := range o.OwnerReferences {
		if owner, there := s.owner(o, ref); there && !stateOf(&owner.Meta).has(foreground) {
			s.t.Fatalf("%v is deleted, and its owner %v is there", o, owner)
		}
	}
	s.remove(o, policy)
	if fails {
		return errFault
	}
	return nil
}

// owner returns the object that a reference names, if it is there.
func (s *simulation) owner(o seen, ref metav1.OwnerReference) (seen, bool) {
	k := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	key := object.Key{Namespace: o.Namespace, Name: ref.Name}
	if k.Kind == rooms1.Kind {
		key.Namespace = ""
	}
	owner, ok := s.objects[place{k.GroupKind(), key}]
	return owner, ok && owner.UID == ref.UID
}

// remove is what a server does at a deletion.
// Source: k8s.io/apiserver/pkg/registry/generic/registry, deletionFinalizersForGarbageCollection.
func (s *simulation) remove(o seen, policy metav1.DeletionPropagation) {
	finalizers := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	switch policy {
	case metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationBackground:
	}
	if o.Deleting() && slices.Equal(finalizers, o.Finalizers) {
		return
	}
	o.Finalizers = finalizers
	o.Deleted = time.Unix(1, 0)
	s.store(o)
}

func (s *simulation) change(_ context.Context, r object.Resource, m *object.Meta, c change) error {
	fails, done := s.fault()
	if fails && !done {
		return errFault
	}
	o, err := s.find(r, m.Key)
	if err != nil {
		return err
	}
	custom := r.Group != ""
	if o.UID != m.UID || custom && o.Version != m.Version {
		return apierrors.NewConflict(schema.GroupResource{}, m.Name, errors.New("precondition"))
	}
	if slices.Contains(o.Finalizers, c.finalizer) {
		s.checkNobodyIsLeft(o, c.finalizer)
	}
	changed := o
	changed.OwnerReferences = c.owners(o.OwnerReferences)
	changed.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == c.finalizer })
	if !c.of(&o.Meta).isNone() {
		s.store(changed)
	}
	if fails {
		return errFault
	}
	return nil
}

// checkNobodyIsLeft fails if an owner is let go whose dependents are there, as far as
// informers have shown that they are its dependents.
func (s *simulation) checkNobodyIsLeft(owner seen, finalizer string) {
	for at, shown := range s.shows {
		o := s.objects[at]
		for _, ref := range o.OwnerReferences {
			isShown := slices.ContainsFunc(shown.OwnerReferences, func(r metav1.OwnerReference) bool {
				return r.UID == owner.UID && blocks(&r) == blocks(&ref) && r.Name == ref.Name && r.Kind == ref.Kind
			})
			if o.UID != shown.UID || ref.UID != owner.UID || !isShown {
				continue
			}
			_, right := s.owner(o, ref)
			if finalizer == metav1.FinalizerOrphanDependents || right && blocks(&ref) {
				s.t.Fatalf("%v goes before %v", owner, o)
			}
		}
	}
}

// draw returns one of the objects.
func (s *simulation) draw(t *rapid.T) seen {
	if len(s.objects) == 0 {
		t.Skip("there is none")
	}
	return s.objects[rapid.SampledFrom(sorted(s.objects)).Draw(t, "object")]
}

func (s *simulation) drawOwners(t *rapid.T) []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for range rapid.IntRange(0, 2).Draw(t, "owners") {
		if len(s.objects) == 0 {
			break
		}
		owner := s.draw(t)
		ref := metav1.OwnerReference{UID: owner.UID, Name: owner.Name, Kind: owner.kind.Kind, APIVersion: owner.kind.GroupVersion().String()}
		switch rapid.IntRange(0, 9).Draw(t, "wrong") {
		case 0:
			ref.UID = "of-nobody"
		case 1:
			ref.Name = "wrong"
		case 2:
			ref.Kind, ref.APIVersion = ghosts1.Kind, ghosts1.GroupVersion().String()
		}
		if rapid.Bool().Draw(t, "blocking") {
			ref.BlockOwnerDeletion = new(true)
		}
		refs = append(refs, ref)
	}
	return refs
}

// Whatever users do, however far informers lag, whichever requests fail and whenever
// the collector is restarted: nothing is deleted that has an owner, and in the end
// nothing is left that should not be.
func TestNothingIsCollectedWrongly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation()
		s.t, s.faults = t, rapid.Bool().Draw(t, "faults")
		created := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { s.t = t },
			"create": func(t *rapid.T) {
				o := seen{kind: rapid.SampledFrom([]schema.GroupVersionKind{maps1, things1, rooms1}).Draw(t, "kind")}
				o.Name = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")
				if o.kind != rooms1 {
					o.Namespace = rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "namespace")
				}
				if _, exists := s.objects[placeOf(o)]; exists {
					return
				}
				created++
				o.UID = types.UID(fmt.Sprintf("uid-%d", created))
				o.OwnerReferences = s.drawOwners(t)
				if rapid.IntRange(0, 3).Draw(t, "held") == 0 {
					o.Finalizers = []string{"held"}
				}
				s.store(o)
			},
			"delete": func(t *rapid.T) {
				s.remove(s.draw(t), rapid.SampledFrom([]metav1.DeletionPropagation{
					metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
				}).Draw(t, "policy"))
			},
			"change owners": func(t *rapid.T) {
				o := s.draw(t)
				o.OwnerReferences = s.drawOwners(t)
				s.store(o)
			},
			"let go": func(t *rapid.T) {
				o := s.draw(t)
				o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == "held" })
				s.store(o)
			},
			"deliver": func(t *rapid.T) {
				if len(s.pending) == 0 {
					return
				}
				s.deliver(rapid.SampledFrom(sorted(s.pending)).Draw(t, "place"), rapid.IntRange(0, 5).Draw(t, "relist") == 0)
			},
			"look": func(t *rapid.T) {
				if len(s.due)+len(s.later) == 0 {
					return
				}
				maps.Copy(s.due, s.later)
				clear(s.later)
				s.run(rapid.SampledFrom(slices.Sorted(maps.Keys(s.due))).Draw(t, "node"))
			},
			"restart": func(*rapid.T) { s.restart() },
		})
		s.t = t
		s.calm()
		for _, at := range sorted(s.objects) { // who holds objects lets go of them
			o := s.objects[at]
			if slices.Contains(o.Finalizers, "held") {
				o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == "held" })
				s.store(o)
			}
		}
		s.calm()
		s.checkRest()
	})
}

// checkRest fails if anything is left to be done.
func (s *simulation) checkRest() {
	for _, o := range s.objects {
		if o.Deleting() {
			s.t.Errorf("%v is still there", o)
			continue
		}
		dangling, solid := 0, 0
		for _, ref := range o.OwnerReferences {
			// References go by their UID: of two with the same one, the true one
			// counts.
			if slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool {
				_, there := s.owner(o, r)
				unknown := r.Kind == ghosts1.Kind || r.Kind != rooms1.Kind && o.Namespace == ""
				return (there || unknown) && r.UID == ref.UID
			}) {
				solid++
			} else {
				dangling++
			}
		}
		if dangling > 0 {
			s.t.Errorf("%v has %d owners and %d that are not there", o, solid, dangling)
		}
	}
	for uid, n := range s.collector.graph.nodes {
		if n.state.has(observed) {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.objects)), func(o seen) bool {
			return slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == uid })
		}) {
			s.t.Errorf("the graph knows %s, and nobody names it", uid)
		}
	}
	if s.t.Failed() {
		s.t.Fatalf("objects: %v", s.objects)
	}
}
