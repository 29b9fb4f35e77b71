// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
)

// informerCache implements cache.Cache. It is safe for concurrent use.
type informerCache struct {
	options  crcache.Options
	settings *settings
	factory  *cache.Factory
	log      logr.Logger

	started chan struct{} // closed by Start
	ended   chan struct{} // closed when nothing of the cache runs any more

	mu      sync.Mutex
	kinds   map[schema.GroupVersionKind]*kind
	running context.Context // nil: Start has not been called

	// known are the views of all kinds, for readers: each Get begins here, and workers read at the same time. The map
	// that it points to does not change; mu is held to replace it.
	known atomic.Pointer[map[viewKey]*view]
}

// viewKey names a view.
type viewKey struct {
	gvk  schema.GroupVersionKind
	form decode.View
}

var _ crcache.Cache = (*informerCache)(nil)

func newInformerCache(config *rest.Config, o crcache.Options, s *settings, e *extra) (*informerCache, error) {
	options := []client.Option{client.WithScheme(o.Scheme)}
	if o.HTTPClient.Transport != nil {
		options = append(options, client.WithTransport(o.HTTPClient.Transport))
	}
	c, err := client.New(config, options...)
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	log := crlog.Log.WithName("cache")
	factory := cache.NewFactory(c, slog.New(logr.ToSlogHandler(log)), e.factory...)
	if e.detect > 0 {
		factory.DetectMutation(e.detect)
	}
	made := &informerCache{
		options: o, settings: s, log: log, factory: factory,
		started: make(chan struct{}), ended: make(chan struct{}),
		kinds: map[schema.GroupVersionKind]*kind{},
	}
	made.known.Store(&map[viewKey]*view{})
	return made, nil
}

// NeedLeaderElection has a manager start the cache before it leads.
func (c *informerCache) NeedLeaderElection() bool { return false }

// Start runs the informers until ctx ends.
func (c *informerCache) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.running != nil {
		c.mu.Unlock()
		return errors.New("starting the cache: informer already started")
	}
	c.running = ctx
	c.mu.Unlock()
	close(c.started)
	defer close(c.ended)
	return c.factory.Run(ctx)
}

// WaitForCacheSync waits until the cache has been started, and the informers that exist then have
// synced. It returns false if ctx or the cache ends first.
func (c *informerCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		return false
	}
	for _, v := range c.views() {
		if v.waitForSync(ctx) != nil && !v.isRemoved() {
			return false
		}
	}
	return true
}

// views returns the views that exist.
func (c *informerCache) views() []*view {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*view
	for _, k := range c.kinds {
		for _, v := range k.views {
			all = append(all, v)
		}
	}
	return all
}

// GetInformer returns the informer of an object's kind, in the view that the object has, and makes
// it if there is none.
func (c *informerCache) GetInformer(ctx context.Context, o crclient.Object, options ...crcache.InformerGetOption) (crcache.Informer, error) {
	gvk, err := apiutil.GVKForObject(o, c.options.Scheme)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, gvk, decode.ViewOf(o), options)
}

// GetInformerForKind is as GetInformer, in the view of the type that the scheme has for the kind.
func (c *informerCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, options ...crcache.InformerGetOption) (crcache.Informer, error) {
	o, err := c.options.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, gvk, decode.ViewOf(o), options)
}

func (c *informerCache) informer(ctx context.Context, gvk schema.GroupVersionKind, form decode.View, options []crcache.InformerGetOption) (crcache.Informer, error) {
	var o crcache.InformerGetOptions
	for _, option := range options {
		option(&o)
	}
	v, err := c.view(gvk, form)
	if err != nil {
		return nil, err
	}
	if o.BlockUntilSynced == nil || *o.BlockUntilSynced {
		if err := c.block(ctx, v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// block waits until a view has synced, if the cache has been started.
func (c *informerCache) block(ctx context.Context, v *view) error {
	if !c.isStarted() {
		return nil
	}
	if err := v.waitForSync(ctx); err != nil {
		return apierrors.NewTimeoutError(fmt.Sprintf("waiting for the informer of %s (%s) to sync: %v", v.kind.gvk, v.form, err), 0)
	}
	return nil
}

func (c *informerCache) isStarted() bool { return isClosed(c.started) }

// RemoveInformer removes the informer of an object's kind, in the view that the object has. Its
// handlers get no more events.
func (c *informerCache) RemoveInformer(_ context.Context, o crclient.Object) error {
	gvk, err := apiutil.GVKForObject(o, c.options.Scheme)
	if err != nil {
		return err
	}
	c.drop(gvk, decode.ViewOf(o))()
	return nil
}

// drop takes a view out of the cache, and returns what ends it.
func (c *informerCache) drop(gvk schema.GroupVersionKind, form decode.View) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[gvk]
	if k == nil {
		return func() {}
	}
	end = k.drop(form)
	c.publish(viewKey{gvk, form}, nil)
	if len(k.views) == 0 {
		delete(c.kinds, gvk) // a definition that comes again may have another plural or scope
	}
	return end
}

// IndexField adds an index of a field, for lists with a field selector.
func (c *informerCache) IndexField(ctx context.Context, o crclient.Object, field string, values crclient.IndexerFunc) error {
	informer, err := c.GetInformer(ctx, o, crcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return informer.AddIndexers(fieldIndexer(field, values))
}

// view returns a view of a kind, and makes it if there is none.
func (c *informerCache) view(gvk schema.GroupVersionKind, form decode.View) (*view, error) {
	if v := c.peek(gvk, form); v != nil {
		return v, nil
	}
	// The mapper may send a request, so it is used without the lock.
	made, err := c.newKind(gvk)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[gvk]
	if k == nil {
		k = made
	}
	v, err := k.add(form)
	if err != nil {
		return nil, err // a kind without a view would keep the resource that the mapper had for it
	}
	c.kinds[gvk] = k
	c.publish(viewKey{gvk, form}, v)
	return v, nil
}

// publish lets readers find a view, or find it no more if it is nil. mu is held.
func (c *informerCache) publish(key viewKey, v *view) {
	before := *c.known.Load()
	if before[key] == v {
		return
	}
	after := maps.Clone(before)
	if v == nil {
		delete(after, key)
	} else {
		after[key] = v
	}
	c.known.Store(&after)
}

// peek returns a view of a kind, or nil if there is none.
func (c *informerCache) peek(gvk schema.GroupVersionKind, form decode.View) *view {
	return (*c.known.Load())[viewKey{gvk, form}]
}

// reader returns the view that a read uses, after it has synced.
func (c *informerCache) reader(ctx context.Context, gvk schema.GroupVersionKind, form decode.View) (*view, error) {
	v := c.peek(gvk, form)
	if v == nil {
		if c.options.ReaderFailOnMissingInformer {
			return nil, &crcache.ErrResourceNotCached{GVK: gvk}
		}
		var err error
		if v, err = c.view(gvk, form); err != nil {
			return nil, err
		}
	}
	if !c.isStarted() {
		return nil, &crcache.ErrCacheNotStarted{}
	}
	if v.HasSynced() {
		return v, nil
	}
	return v, c.block(ctx, v)
}

// elementOf returns the kind and the view of the objects of a list.
func (c *informerCache) elementOf(list crclient.ObjectList) (schema.GroupVersionKind, decode.View, error) {
	gvk, err := apiutil.GVKForObject(list, c.options.Scheme)
	if err != nil {
		return gvk, 0, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, decode.ViewOf(runtime.Object(list)), nil
}
