// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/adapters/internal/handlername"
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// registration is a handler of a view.
type registration struct {
	view   *view
	of     []*cache.Registration // one for each part of the store
	synced *gate

	removing sync.Once
	removed  chan struct{}
}

// register adds a handler to all informers of the view.
func (v *view) register(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (*registration, error) {
	r := &registration{view: v, removed: make(chan struct{})}
	name := handlername.Of(h)
	var synced []<-chan struct{}
	for _, p := range v.store.parts {
		period := p.resync
		if o.ResyncPeriod != nil {
			period = *o.ResyncPeriod
		}
		of, err := p.informer.AddHandler(v.deliver(h), cache.HandlerOptions{
			Name: name, Resync: period,
			EveryStep: true, // handlers may count
		})
		if err != nil {
			r.remove()
			return nil, err
		}
		r.of = append(r.of, of)
		synced = append(synced, of.Synced())
	}
	r.synced = newGate(v.synced.name+" + event handler "+name, synced,
		ends{view: v.removed, cache: v.kind.cache.ended, handler: r.removed})
	return r, nil
}

// remove ends the calls of the handler. It may be called more than once.
func (r *registration) remove() {
	r.removing.Do(func() { close(r.removed) })
	for _, of := range r.of {
		of.Remove()
	}
}

// HasSynced reports whether the handler has handled all objects of the first list.
func (r *registration) HasSynced() bool {
	return r.synced.holds()
}

// HasSyncedChecker is done when the handler has handled all objects of the first list.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r.synced }

// deliver returns a handler of the cache that calls one of client-go.
func (v *view) deliver(h toolscache.ResourceEventHandler) cache.Handler[object.Object] {
	return func(e cache.Event[object.Object]) {
		if e.Kind == cache.Deleted {
			v.deliverDeletion(h, e)
			return
		}
		is, err := v.read(e.New)
		if err != nil {
			v.unreadable(e, err)
			return
		}
		switch e.Kind {
		case cache.Added:
			h.OnAdd(is, e.Initial)
		case cache.Resync:
			h.OnUpdate(is, is)
		case cache.Updated, cache.Replaced, cache.Deleted:
			v.deliverChange(h, e, is)
		}
	}
}

// deliverDeletion delivers a deletion. A handler that knows an earlier state must get it, also if
// the last state cannot be decoded.
func (v *view) deliverDeletion(h toolscache.ResourceEventHandler, e cache.Event[object.Object]) {
	was, err := v.read(e.Old)
	switch {
	case err != nil:
		v.deliverMetadata(h, e, err)
	case e.Stale:
		h.OnDelete(decode.Tombstone(was))
	default:
		h.OnDelete(was)
	}
}

// deliverMetadata delivers the deletion of an object that cannot be decoded, with its metadata.
func (v *view) deliverMetadata(h toolscache.ResourceEventHandler, e cache.Event[object.Object], why error) {
	o, err := v.kind.sample(v.form)
	if err != nil {
		v.unreadable(e, err)
		return
	}
	v.kind.cache.log.Error(why, "the last state of a deleted object cannot be decoded; its handlers get the metadata alone",
		"kind", v.kind.gvk.String(), "object", e.Key().String())
	h.OnDelete(decode.TombstoneOfMetadata(e.Old, o))
}

// deliverChange delivers a change to is. If the state before cannot be decoded, the object is new to
// the handler: an update needs both states.
func (v *view) deliverChange(h toolscache.ResourceEventHandler, e cache.Event[object.Object], is object.Object) {
	was, err := v.read(e.Old)
	switch {
	case err != nil:
		v.kind.cache.log.Error(err, "the state of an object before a change cannot be decoded; its handlers get an addition",
			"kind", v.kind.gvk.String(), "object", e.Key().String(), "event", e.Kind.String())
		h.OnAdd(is, false)
	case e.Kind == cache.Replaced:
		h.OnDelete(decode.Tombstone(was))
		h.OnAdd(is, false)
	default:
		h.OnUpdate(was, is)
	}
}

// read returns the object of an item, which is shared and read-only.
func (v *view) read(item cache.Item[object.Object]) (object.Object, error) {
	o, _, err := v.store.reader.Read(item, v.form)
	return o, err
}

func (v *view) unreadable(e cache.Event[object.Object], err error) {
	v.kind.cache.log.Error(err, "an object cannot be decoded; its handlers do not get the event",
		"kind", v.kind.gvk.String(), "object", e.Key().String(), "event", e.Kind.String())
}
