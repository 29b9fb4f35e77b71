// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
)

// view is a kind as programs read it in one form: typed, unstructured or metadata alone. It
// implements the Informer of controller-runtime. Views of one kind have handlers and indexes of
// their own, and share a store.
type view struct {
	kind    *kind
	form    decode.View
	store   *store
	synced  *gate
	removed chan struct{}

	mu       sync.Mutex
	indexes  map[string]*index
	handlers map[*registration]bool
}

var _ crcache.Informer = (*view)(nil)

func newView(k *kind, form decode.View, s *store) *view {
	v := &view{
		kind: k, form: form, store: s, removed: make(chan struct{}),
		indexes: firstIndexes(), handlers: map[*registration]bool{},
	}
	var synced []<-chan struct{}
	for _, p := range s.parts {
		synced = append(synced, p.informer.Synced())
	}
	v.synced = newGate(k.gvk.String()+" ("+form.String()+")", synced, ends{view: v.removed, cache: k.cache.ended})
	return v
}

// HasSynced reports whether the informer has listed its kind.
func (v *view) HasSynced() bool { return v.synced.holds() }

// HasSyncedChecker is done when the informer has listed its kind.
func (v *view) HasSyncedChecker() toolscache.DoneChecker { return v.synced }

// IsStopped reports whether the informer has been removed, or stopped with its cache.
func (v *view) IsStopped() bool {
	return v.isRemoved() || isClosed(v.kind.cache.ended)
}

func (v *view) isRemoved() bool { return isClosed(v.removed) }

var errRemoved = errors.New("the informer has been removed")

// waitForSync waits until all informers of the view have synced.
func (v *view) waitForSync(ctx context.Context) error {
	for _, p := range v.store.parts {
		if err := p.informer.WaitForSync(ctx); err != nil {
			if v.isRemoved() {
				return errRemoved
			}
			return err
		}
	}
	return nil
}

// remove ends the view, and takes back what it has added to its store, which may serve other views.
func (v *view) remove() {
	close(v.removed)
	v.mu.Lock()
	defer v.mu.Unlock()
	for r := range v.handlers {
		r.remove()
	}
	clear(v.handlers)
	for _, x := range v.indexes {
		for _, part := range x.parts {
			part.Remove()
		}
	}
}

// AddEventHandler adds a handler with the resync period of the cache.
func (v *view) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own. 0 is none.
func (v *view) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions adds a handler. It first gets all objects that exist.
func (v *view) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isRemoved() {
		return nil, fmt.Errorf("adding a handler for %s: %w", v.kind.gvk, errRemoved)
	}
	r, err := v.register(h, o)
	if err != nil {
		return nil, err
	}
	v.handlers[r] = true
	return r, nil
}

// RemoveEventHandler removes a handler. It may be called more than once.
func (v *view) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.view != v {
		return fmt.Errorf("removing a handler of %s: the registration is not one of this informer", v.kind.gvk)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.handlers, r)
	r.remove()
	return nil
}
