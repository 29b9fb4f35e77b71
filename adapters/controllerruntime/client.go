// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/object"
)

// NewClient makes a client that reads its own writes. It is a client.NewClientFunc, for the field
// NewClient of manager.Options and cluster.Options, beside NewCache:
//
//	manager.Options{NewCache: controllerruntime.NewCache, NewClient: controllerruntime.NewClient}
//
// A Get or a List that begins after a write of this client has returned waits until the cache has
// seen that write. It waits for writes of the objects that it may return, and of no others, in every
// view of their kind. A read that has waited for 30 seconds fails with a timeout
// (apierrors.IsTimeout), and one whose context has ended with the error of the context. A read that
// would have to wait fails at once if the cache has not been started (cache.ErrCacheNotStarted), and
// when the cache stops. If the informer is removed, the read goes on as if it began then.
//
// A write that the server has refused is not waited for. After a write that got no answer, the next
// read of the object first reads its metadata from the server, which needs the right to get or list
// the kind; no read waits for a write that the server carries out even later. The same holds where
// writes of one object overlap, one of them is a deletion, and their answers do not tell whether the
// object still exists. DeleteAllOf lists what it has left. The client waits for deletions of objects
// that the cache or this client has seen. An object that a selector of the cache does not select is
// not waited for.
//
// client.DisableReadYourWritesConsistency, as an option of a read, has it return at once, and as one
// of a write, has no read wait for that write. DeleteAllOf takes it as a field of DeleteAllOfOptions,
// and then lists nothing. The option CacheOptions.EnableReadYourWritesConsistency
// has no effect. Reads that bypass the cache do not wait.
//
// The client is safe for concurrent use. The reader of the options must be a cache of NewCache; without
// a reader, the client is that of client.New.
func NewClient(config *rest.Config, o crclient.Options) (crclient.Client, error) {
	if o.Cache == nil || o.Cache.Reader == nil {
		return crclient.New(config, o)
	}
	c, ok := o.Cache.Reader.(*informerCache)
	if !ok {
		return nil, fmt.Errorf("making a client: its reader is a %T, and only a cache of NewCache shows what it has seen", o.Cache.Reader)
	}
	reads := *o.Cache
	reads.EnableReadYourWritesConsistency = nil
	inner, err := crclient.New(config, crclient.Options{HTTPClient: o.HTTPClient, Scheme: o.Scheme, Mapper: o.Mapper, Cache: &reads, Log: o.Log})
	if err != nil {
		return nil, err
	}
	live, err := crclient.New(config, crclient.Options{HTTPClient: o.HTTPClient, Scheme: o.Scheme, Mapper: o.Mapper})
	if err != nil {
		return nil, err
	}
	own := &ownClient{Client: inner, cache: c, own: newOwnWrites(live, c.handles), uncached: map[schema.GroupVersionKind]bool{}, unstructured: reads.Unstructured}
	for _, sample := range reads.DisableFor {
		gvk, err := inner.GroupVersionKindFor(sample)
		if err != nil {
			return nil, fmt.Errorf("making a client: finding the kind of %T in DisableFor: %w", sample, err)
		}
		own.uncached[gvk] = true
	}
	return withDefaultsOfWrites(own, o), nil
}

// withDefaultsOfWrites has the writes of a client take the options that the client was made with, as
// client.New does.
func withDefaultsOfWrites(c crclient.Client, o crclient.Options) crclient.Client {
	if isSet(o.DryRun) {
		c = crclient.NewDryRunClient(c)
	}
	if o.FieldOwner != "" {
		c = crclient.WithFieldOwner(c, o.FieldOwner)
	}
	if o.FieldValidation != "" {
		c = crclient.WithFieldValidation(c, crclient.FieldValidation(o.FieldValidation))
	}
	return c
}

// ownClient implements client.Client.
type ownClient struct {
	crclient.Client

	cache        *informerCache
	own          *ownWrites
	uncached     map[schema.GroupVersionKind]bool // kinds that are not read from the cache
	unstructured bool                             // unstructured objects are read from the cache
}

var _ crclient.Client = (*ownClient)(nil)

// Get waits for own writes of the object, and reads it.
func (c *ownClient) Get(ctx context.Context, key crclient.ObjectKey, o crclient.Object, options ...crclient.GetOption) error {
	var how crclient.GetOptions
	how.ApplyOptions(options)
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return err
	}
	form := decode.ViewOf(o)
	if !how.DisableReadYourWritesConsistency && c.isCached(gvk, form) {
		if err := c.awaitObject(ctx, gvk, form, key); err != nil {
			return err
		}
	}
	return c.Client.Get(ctx, key, o, options...)
}

// List waits for own writes of the objects that the namespace has, and lists them. The selectors of the
// list are not compared: an object that they do not select may have been selected before the write.
func (c *ownClient) List(ctx context.Context, list crclient.ObjectList, options ...crclient.ListOption) error {
	var how crclient.ListOptions
	how.ApplyOptions(options)
	gvk, form, err := c.cache.elementOf(list)
	if err != nil {
		return err
	}
	if !how.DisableReadYourWritesConsistency && c.isCached(gvk, form) {
		if err := c.awaitNamespace(ctx, gvk, form, how.Namespace); err != nil {
			return err
		}
	}
	return c.Client.List(ctx, list, options...)
}

func (c *ownClient) isCached(gvk schema.GroupVersionKind, form decode.View) bool {
	return !c.uncached[gvk] && (form != decode.Unstructured || c.unstructured)
}

// Create creates an object.
func (c *ownClient) Create(ctx context.Context, o crclient.Object, options ...crclient.CreateOption) error {
	var how crclient.CreateOptions
	how.ApplyOptions(options)
	return c.write(o, len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency, func() error {
		return c.Client.Create(ctx, o, options...)
	})
}

// Update replaces an object.
func (c *ownClient) Update(ctx context.Context, o crclient.Object, options ...crclient.UpdateOption) error {
	var how crclient.UpdateOptions
	how.ApplyOptions(options)
	return c.write(o, len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency, func() error {
		return c.Client.Update(ctx, o, options...)
	})
}

// Patch patches an object.
func (c *ownClient) Patch(ctx context.Context, o crclient.Object, patch crclient.Patch, options ...crclient.PatchOption) error {
	var how crclient.PatchOptions
	how.ApplyOptions(options)
	return c.write(o, len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency, func() error {
		return c.Client.Patch(ctx, o, patch, options...)
	})
}

// Apply applies a configuration.
func (c *ownClient) Apply(ctx context.Context, config runtime.ApplyConfiguration, options ...crclient.ApplyOption) error {
	var how crclient.ApplyOptions
	how.ApplyOptions(options)
	return c.apply(config, len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency, func() error {
		return c.Client.Apply(ctx, config, options...)
	})
}

// Delete deletes an object.
func (c *ownClient) Delete(ctx context.Context, o crclient.Object, options ...crclient.DeleteOption) error {
	var how crclient.DeleteOptions
	how.ApplyOptions(options)
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return err
	}
	if len(how.DryRun) > 0 || how.DisableReadYourWritesConsistency {
		return c.Client.Delete(ctx, o, options...)
	}
	var uid types.UID
	if how.Preconditions != nil && how.Preconditions.UID != nil {
		uid = *how.Preconditions.UID
	}
	before := targetOf(gvk, o)
	s := c.own.send(gvk.GroupKind(), before.key)
	defer c.own.forget(s)
	known := c.known(before, o, uid)
	err = c.Client.Delete(ctx, o, options...)
	switch {
	case err == nil:
		c.deleted(s, before, known, uid == "")
	case unanswered(err):
		c.unknown(s, before)
	}
	return err
}

// DeleteAllOf deletes the objects of a kind that the options select, and then lists what is left.
func (c *ownClient) DeleteAllOf(ctx context.Context, o crclient.Object, options ...crclient.DeleteAllOfOption) error {
	var how crclient.DeleteAllOfOptions
	how.ApplyOptions(options)
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return err
	}
	ignored := how.DeleteOptions.DisableReadYourWritesConsistency || how.ListOptions.DisableReadYourWritesConsistency
	if len(how.DryRun) > 0 || ignored {
		return c.Client.DeleteAllOf(ctx, o, options...)
	}
	s := c.own.send(gvk.GroupKind(), object.Key{Namespace: how.Namespace})
	defer c.own.forget(s)
	err = c.Client.DeleteAllOf(ctx, o, options...)
	if err == nil || unanswered(err) {
		c.deletedAll(ctx, s, gvk, &how.ListOptions)
	}
	return err
}

// write sends a write whose answer is in o, and notes what the cache has to see of it.
func (c *ownClient) write(o crclient.Object, ignored bool, send func() error) error {
	if ignored {
		return send()
	}
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return err
	}
	before := targetOf(gvk, o)
	s := c.own.send(gvk.GroupKind(), before.key)
	defer c.own.forget(s)
	err = send()
	switch {
	case err == nil:
		c.wrote(s, targetOf(gvk, o), o)
	case unanswered(err) && before.key.Name != "": // a name that the server would have made is not known
		c.unknown(s, before)
	}
	return err
}

// apply is as write, with a configuration.
func (c *ownClient) apply(config runtime.ApplyConfiguration, ignored bool, send func() error) error {
	if ignored {
		return send()
	}
	before, broken := targetOfConfiguration(config)
	if broken != nil {
		return errors.Join(send(), broken)
	}
	s := c.own.send(before.gvk.GroupKind(), before.key)
	defer c.own.forget(s)
	err := send()
	if err != nil {
		if unanswered(err) {
			c.unknown(s, before)
		}
		return err
	}
	after, err := targetOfConfiguration(config)
	if err != nil || after.version == "" {
		c.unknown(s, before)
		return err
	}
	c.wrote(s, after, nil)
	return nil
}

// writeUnseen sends a write whose answer does not have the version of the object: the next read compares the cache with the
// server.
func (c *ownClient) writeUnseen(o crclient.Object, ignored bool, send func() error) error {
	gvk, unnamed := apiutil.GVKForObject(o, c.Scheme())
	if ignored || unnamed != nil {
		return send()
	}
	t := targetOf(gvk, o)
	s := c.own.send(gvk.GroupKind(), t.key)
	defer c.own.forget(s)
	err := send()
	if err == nil || unanswered(err) {
		c.unknown(s, t)
	}
	return err
}

// Status returns a client of the status of objects.
func (c *ownClient) Status() crclient.SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client of a subresource. Writes of it are writes of the object.
func (c *ownClient) SubResource(name string) crclient.SubResourceClient {
	return &ownSubresource{SubResourceClient: c.Client.SubResource(name), client: c, name: name}
}
