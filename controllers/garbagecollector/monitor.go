// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// informer shows the metadata of the objects of one kind.
type informer = cache.SharedInformer[*metav1.PartialObjectMetadata]

// monitor feeds the graph with the objects of one kind.
type monitor struct {
	resource object.Resource
	kind     kind
	informer informer
	handler  *cache.Registration // nil until it listens
	ended    bool                // guarded by the graph's lock
}

func newMonitor(p cache.Provider, r object.Resource) *monitor {
	k := r.GroupVersionKind()
	options := []cache.InformerOption{cache.OfKind(k)}
	if r.Group == coordinationv1.GroupName && r.Plural == "leases" {
		options = append(options, cache.Gathers(controllers.HeartbeatsGather))
	}
	return &monitor{
		resource: r, kind: kindOf(k),
		informer: cache.Informer[*metav1.PartialObjectMetadata](p, options...),
	}
}

// listen begins to feed the graph. changed is called after each change that is not of the
// first state.
func (m *monitor) listen(c *collector, changed func()) error {
	handler, err := m.informer.AddHandler(func(e cache.Event[*metav1.PartialObjectMetadata]) {
		m.tell(c, &e)
		if changed != nil && !e.Initial {
			changed()
		}
	}, cache.HandlerOptions{Name: Name})
	if err != nil {
		return fmt.Errorf("watching %s: %w", m.resource, err)
	}
	m.handler = handler
	return nil
}

// tell applies one change to the graph. A deletion counts as certain only if it was
// observed, and not concluded from a list.
func (m *monitor) tell(c *collector, e *cache.Event[*metav1.PartialObjectMetadata]) {
	var before, now object.Meta
	about := &now
	if e.Old.Exists() && (e.Kind == cache.Deleted || e.Kind == cache.Replaced) {
		before = e.Old.Meta()
		about = &before
	}
	if e.New.Exists() {
		now = e.New.Meta()
		about = &now
	}
	c.tell(workqueue.Cause{
		Source: m.resource.Plural, Verb: e.Kind.String(), Version: string(about.Version),
		Ref: object.Ref{Group: m.resource.Group, Kind: m.resource.Kind, Key: about.Key, UID: about.UID},
	}, func(g *graph) {
		if m.ended {
			return
		}
		if before.UID != "" {
			g.remove(m.kind, before.UID, e.Kind == cache.Deleted && !e.Stale)
		}
		if now.UID != "" {
			g.observe(m.kind, &now)
		}
	})
}

// mute stops feeding the graph.
func (m *monitor) mute(c *collector) {
	if m.handler != nil {
		m.handler.Remove()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.ended = true // a call of the handler may be waiting for the graph
}

// forget removes the objects of the kind from the graph that are not in kept.
func (m *monitor) forget(c *collector, kept func(object.Key, types.UID) bool) {
	c.tell(workqueue.Cause{Source: m.resource.Plural, Verb: "Unwatched"}, func(g *graph) { g.forget(m.kind, kept) })
}

// giveBack releases an informer that is no longer used.
func giveBack(i informer) { i.Release() }

// isSynced reports whether the graph has all objects that existed when the monitor began.
func (m *monitor) isSynced() bool {
	select {
	case <-m.handler.Synced():
		return true
	default:
		return false
	}
}

// nothing is what is kept of a kind that is no longer served.
func nothing(object.Key, types.UID) bool { return false }

// shows reports whether the informer shows an object.
func (m *monitor) shows(key object.Key, uid types.UID) bool {
	meta, shown := m.informer.Handle().Meta(key)
	return shown && meta.UID == uid
}
