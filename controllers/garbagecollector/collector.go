// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

const (
	// tries is how often a write is sent that conflicts with other writes.
	tries = 5
	// showTime is how long no run reconciles an object after a write, unless its informer
	// shows the write before.
	showTime = 5 * time.Second
	// Owners that no informer has shown are read again, each time after twice as long.
	// The longest is that of client-go's rate limiter, which upstream uses.
	askFirst = time.Second
	askMost  = 1000 * time.Second
)

// collector reconciles nodes of the graph. It is safe for concurrent use, by one
// goroutine for each node.
type collector struct {
	world world
	// add enqueues nodes; report reports dependents that name an owner in another
	// namespace. Both are called with the graph's lock held.
	add    func(why workqueue.Cause, uids []types.UID)
	report func(misplacement)
	// each calls do for 0 to n-1, some at a time.
	each func(n int, do func(i int))

	mu    sync.Mutex
	graph *graph
}

// tell applies a change to the graph, and enqueues the nodes that are due after it.
func (c *collector) tell(why workqueue.Cause, change func(*graph)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.graph)
	due, misplaced := c.graph.take()
	if len(due) > 0 {
		c.add(why, due)
	}
	for _, m := range misplaced {
		c.report(m)
	}
}

func (c *collector) dependents(uid types.UID) []target {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.graph.dependents(uid)
}

// look reconciles a node. It reads the graph as it is now, whatever enqueued the node.
func (c *collector) look(ctx context.Context, uid types.UID) (controller.Result, error) {
	c.mu.Lock()
	v, ok := c.graph.view(uid)
	var circle []types.UID
	if v.state.has(foreground) && v.blocked {
		circle = c.graph.circle(uid)
	}
	if v.state.has(behind) {
		c.graph.unexpect(uid) // in the next run
	}
	c.mu.Unlock()
	switch {
	case !ok, v.state.has(gone):
		return controller.Result{}, nil
	case !v.state.has(observed):
		return c.verify(ctx, uid, v.unverified)
	case v.state.has(behind):
		return controller.Result{After: showTime}, nil
	case v.state.has(orphaning):
		return controller.Result{}, c.orphan(ctx, v.target)
	case v.state.has(foreground) && !v.blocked:
		return controller.Result{}, c.finish(ctx, v.target)
	case v.state.has(foreground) && len(circle) > 0:
		return controller.Result{}, c.unblock(ctx, v.target, circle)
	case v.state.has(deleting):
		c.becauseDeleting(ctx, v)
		return controller.Result{}, nil
	}
	return controller.Result{}, c.consider(ctx, v.target, v.hasDependents)
}

// consider decides about an object that is not being deleted, and does it.
//
// The decision is about the object as its informer shows it, which may be old. A deletion
// therefore has that version as its precondition, and the object is read from the server
// only if the version is no longer the newest. An object that changes all the time is
// deleted without the version, if it still names the owners that the decision was about.
func (c *collector) consider(ctx context.Context, t target, hasDependents bool) error {
	r, served := c.world.resource(t.kind)
	m, shown := c.world.shown(t)
	if !served || !shown || m.UID != t.uid {
		return nil // the informer will tell
	}
	version := m.Version
	var conflict error
	for range tries {
		if m.Deleting() {
			return nil
		}
		owners, err := c.classify(ctx, &m)
		if err != nil {
			return fmt.Errorf("reading the owners of %s %s: %w", r, t.key, err)
		}
		d := decide(owners, m.Finalizers, hasDependents)
		switch {
		case len(d.drop) > 0:
			return c.write(ctx, t, change{drop: d.drop})
		case d.delete == "":
			return nil
		}
		conflict = c.ahead(t, func() error { return c.world.delete(ctx, r, t.key, t.uid, version, d.delete) })
		if conflict == nil || client.Absent(conflict) {
			return nil
		}
		if !apierrors.IsConflict(conflict) {
			return fmt.Errorf("deleting %s %s, whose owners are gone: %w", r, t.key, conflict)
		}
		live, err := c.world.get(ctx, r, t.key)
		if client.Absent(err) || err == nil && live.UID != t.uid {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s %s before its deletion: %w", r, t.key, err)
		}
		if live.Version != m.Version {
			c.expect(t)
		}
		version = live.Version
		if reflect.DeepEqual(live.OwnerReferences, m.OwnerReferences) {
			version = ""
		}
		m = live
	}
	return fmt.Errorf("deleting %s %s, whose owners are gone: %w", r, t.key, conflict)
}

// classify finds the state of the owners of an object. It reads from the server those
// that the graph does not know for certain, and those that wait for their dependents: an
// owner may have stopped waiting.
func (c *collector) classify(ctx context.Context, m *object.Meta) (owners, error) {
	var o owners
	for _, ref := range m.OwnerReferences {
		r := referenceOf(ref, m.Namespace)
		c.mu.Lock()
		v := c.graph.verdict(r)
		c.mu.Unlock()
		if v == unsure || v == waiting {
			a, err := c.ask(ctx, r)
			if err != nil {
				return owners{}, err
			}
			v = a
		}
		switch v {
		case solid:
			o.solid = append(o.solid, r.uid)
		case unsure:
			o.unknown = append(o.unknown, r.uid)
		case waiting:
			o.waiting = append(o.waiting, r.uid)
		case absent:
			o.dangling = append(o.dangling, r.uid)
		}
	}
	return o, nil
}

// write makes a change to an object, and tries again after a conflict. An object that is
// gone needs no change.
func (c *collector) write(ctx context.Context, t target, wanted change) error {
	r, served := c.world.resource(t.kind)
	m, shown := c.world.shown(t)
	if !served || !shown || m.UID != t.uid {
		return nil // the informer will tell
	}
	var err error
	for range tries {
		left := wanted.of(&m)
		if left.isNone() {
			return nil
		}
		err = c.ahead(t, func() error { return c.world.change(ctx, r, &m, left) })
		if err == nil || client.Absent(err) {
			return nil
		}
		// Invalid is a patch of references that are gone.
		if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("changing %s %s: %w", r, t.key, err)
		}
		live, getErr := c.world.get(ctx, r, t.key)
		if client.Absent(getErr) || getErr == nil && live.UID != t.uid {
			return nil
		}
		if getErr != nil {
			return fmt.Errorf("reading %s %s before a change: %w", r, t.key, getErr)
		}
		if live.Version != m.Version {
			c.expect(t)
		}
		m = live
	}
	return fmt.Errorf("changing %s %s: %w", r, t.key, err)
}

// ahead makes a write. From its beginning on, the object on the server counts as newer
// than its informer shows.
func (c *collector) ahead(t target, write func() error) error {
	c.expect(t)
	err := write()
	if err != nil && !apierrors.IsConflict(err) && !client.Absent(err) {
		c.mu.Lock()
		c.graph.unexpect(t.uid)
		c.mu.Unlock()
	}
	return err
}

func (c *collector) expect(t target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.graph.expect(t.uid)
}

// ask reads an owner from the server. The result is unsure if the owner cannot be looked
// up: its kind is not served now, or the kind is namespaced and the dependent is not, so
// that the namespace is not known.
func (c *collector) ask(ctx context.Context, ref reference) (verdict, error) {
	r, served := c.world.resource(ref.kind)
	key, ok := keyOf(r, ref)
	if !served || !ok {
		return unsure, nil
	}
	m, err := c.world.get(ctx, r, key)
	switch {
	case client.Absent(err) || err == nil && m.UID != ref.uid:
		c.refute(ref)
		return absent, nil
	case apierrors.IsNotFound(err):
		return unsure, nil // the kind has gone meanwhile
	case err != nil:
		return unsure, fmt.Errorf("reading the owner %s %s: %w", r, key, err)
	case stateOf(&m).has(foreground):
		return waiting, nil
	}
	return solid, nil
}

// refute records in the graph that the server has no such owner.
func (c *collector) refute(ref reference) {
	k := ref.kind.Value()
	c.tell(workqueue.Cause{
		Source: "server", Verb: workqueue.Deleted,
		Ref: object.Ref{Group: k.Group, Kind: k.Kind, Key: object.Key{Namespace: ref.namespace, Name: ref.name}, UID: ref.uid},
	}, func(g *graph) { g.refute(ref) })
}

// keyOf returns where the object is that a reference names. An object outside of
// namespaces cannot name one inside.
func keyOf(r object.Resource, ref reference) (object.Key, bool) {
	if !r.Namespaced {
		return object.Key{Name: ref.name}, true
	}
	return object.Key{Namespace: ref.namespace, Name: ref.name}, ref.namespace != ""
}
