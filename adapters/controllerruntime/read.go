// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/parallel"
	"github.com/setpoint-io/setpoint/object"
)

// Get reads an object into out, which the caller may change, unless deep copies are off.
func (c *informerCache) Get(ctx context.Context, key crclient.ObjectKey, out crclient.Object, options ...crclient.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, c.options.Scheme)
	if err != nil {
		return err
	}
	v, err := c.reader(ctx, gvk, decode.ViewOf(out))
	if err != nil {
		return err
	}
	return v.get(key, out, options)
}

func (v *view) get(key crclient.ObjectKey, out crclient.Object, options []crclient.GetOption) error {
	var o crclient.GetOptions
	o.ApplyOptions(options)
	if !v.kind.resource.Namespaced {
		key.Namespace = ""
	}
	p := v.store.partOf(key.Namespace)
	if p == nil {
		return fmt.Errorf("unable to get: %v because of unknown namespace for the cache", key)
	}
	item := p.informer.Snapshot().Get(object.Key{Namespace: key.Namespace, Name: key.Name})
	if !item.Exists() {
		return apierrors.NewNotFound(schema.GroupResource{Group: v.kind.gvk.Group, Resource: v.kind.gvk.Kind}, key.Name)
	}
	found, err := v.take(item, p.shared || isSet(o.UnsafeDisableDeepCopy))
	if err != nil {
		return err
	}
	to, from := reflect.ValueOf(out), reflect.ValueOf(found)
	if from.Type() != to.Type() && !from.Type().AssignableTo(to.Type()) {
		return fmt.Errorf("the cache has objects of type %s, not %s", from.Type(), to.Type())
	}
	to.Elem().Set(from.Elem())
	return nil
}

// take returns the object of an item: one that readers share, or one of the caller's own with its
// kind.
func (v *view) take(item cache.Item[object.Object], share bool) (object.Object, error) {
	if share {
		return v.read(item)
	}
	o, err := v.store.reader.Copy(item, v.form)
	if err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(v.kind.gvk)
	return o, nil
}

func isSet(b *bool) bool { return b != nil && *b }

// partOf returns the informer that has the objects of a namespace, or nil if none has.
func (s *store) partOf(namespace string) *part {
	if s.only != nil {
		return s.only
	}
	if p := s.parts[namespace]; p != nil {
		return p
	}
	return s.parts[""]
}

// List reads the objects that the options select into out. They are in no particular order.
func (c *informerCache) List(ctx context.Context, out crclient.ObjectList, options ...crclient.ListOption) error {
	gvk, form, err := c.elementOf(out)
	if err != nil {
		return err
	}
	var o crclient.ListOptions
	o.ApplyOptions(options)
	if o.Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	v, err := c.reader(ctx, gvk, form)
	if err != nil {
		return err
	}
	objects, err := v.list(&o)
	if err != nil {
		return err
	}
	if err := meta.SetList(out, objects); err != nil {
		return err
	}
	out.SetContinue("continue-not-supported") // as the cache of controller-runtime does
	return nil
}

func (v *view) list(o *crclient.ListOptions) ([]runtime.Object, error) {
	namespace := o.Namespace
	if !v.kind.resource.Namespaced {
		namespace = ""
	}
	parts := v.store.parts
	if namespace != "" {
		p := v.store.partOf(namespace)
		if p == nil {
			return nil, fmt.Errorf("unable to list: %v because of unknown namespace for the cache", namespace)
		}
		parts = map[string]*part{namespace: p}
	}
	objects := []runtime.Object{}
	for _, p := range parts {
		items, err := v.items(p, namespace, o.LabelSelector, o.FieldSelector)
		if err != nil {
			return nil, err
		}
		var chosen []cache.Item[object.Object]
		for _, item := range items {
			if o.Limit > 0 && int64(len(objects)+len(chosen)) == o.Limit {
				break
			}
			chosen = append(chosen, item)
		}
		found, err := v.takeAll(chosen, p.shared || isSet(o.UnsafeDisableDeepCopy))
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// forCPU is for how many objects another CPU is worth its start.
const forCPU = 16

// takeAll returns the objects of items as take does. If they are many, all CPUs decode or copy them.
func (v *view) takeAll(items []cache.Item[object.Object], share bool) ([]runtime.Object, error) {
	objects := make([]runtime.Object, len(items))
	if share && v.areStored(items) {
		shared, err := cache.ObjectsOf(items)
		for i, o := range shared {
			objects[i] = o
		}
		return objects, err
	}
	errs := make([]error, len(items))
	parallel.Each(len(items), forCPU, func(i int) { objects[i], errs[i] = v.take(items[i], share) })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// areStored reports whether the objects of items have the type of the view.
func (v *view) areStored(items []cache.Item[object.Object]) bool {
	if v.form != decode.Metadata {
		return v.form == v.store.reader.Stored
	}
	return !slices.ContainsFunc(items, func(item cache.Item[object.Object]) bool { return !item.MetadataOnly() })
}

// items returns the items of a part, by namespace, labels and fields.
func (v *view) items(p *part, namespace string, labelled labels.Selector, selector fields.Selector) (iter.Seq2[object.Key, cache.Item[object.Object]], error) {
	if selector == nil {
		return p.informer.Snapshot().Select(namespace, labelled), nil
	}
	requirements := selector.Requirements()
	if len(requirements) == 0 || slices.ContainsFunc(requirements, func(r fields.Requirement) bool { return r.Operator == selection.NotEquals }) {
		return nil, errors.New("non-exact field matches are not supported by the cache")
	}
	indexes := make([]cache.Index[object.Object], len(requirements))
	for i, r := range requirements {
		x, err := v.index(fieldIndex(r.Field))
		if err != nil {
			return nil, err
		}
		indexes[i] = x.parts[p]
	}
	snapshot := p.informer.Snapshot() // after the indexes were found: an older snapshot does not have them
	var found iter.Seq2[object.Key, cache.Item[object.Object]]
	for i, r := range requirements {
		members := indexes[i].In(snapshot, valueIn(namespace, r.Value))
		if found == nil {
			found = members
		} else {
			found = both(found, members)
		}
	}
	return cache.Matching(found, labelled), nil
}

// both returns the items that are in two sequences of one snapshot.
func both(a, b iter.Seq2[object.Key, cache.Item[object.Object]]) iter.Seq2[object.Key, cache.Item[object.Object]] {
	return func(yield func(object.Key, cache.Item[object.Object]) bool) {
		in := map[object.Key]bool{}
		for key := range b {
			in[key] = true
		}
		for key, item := range a {
			if in[key] && !yield(key, item) {
				return
			}
		}
	}
}
