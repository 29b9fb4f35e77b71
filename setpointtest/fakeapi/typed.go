// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/object"
)

// Read returns an object as its Go type. The result is the caller's. An object that is not
// there, or that the type cannot hold, is an error.
func Read[T object.Object](r *Resource, key object.Key) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return typed[T](r, key)
}

// Objects returns all objects of a resource as their Go type, in the order of their keys.
// They are the caller's.
func Objects[T object.Object](r *Resource) ([]T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []T
	for _, one := range sorted(r.objects) {
		o, err := typed[T](r, one.key)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// Change changes an object without a request and without the rules for clients, as
// [Resource.Put] does. No other write comes between the state that change gets and the one
// that it leaves. The server is locked meanwhile, so change must not use the server. An
// object that is not there is an error.
func Change[T object.Object](r *Resource, key object.Key, change func(T)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, err := typed[T](r, key)
	if err != nil {
		return err
	}
	change(o)
	u, err := r.fromGo(o)
	if err != nil {
		return fmt.Errorf("storing %s %s: %w", r.Resource, key, err)
	}
	r.storeOver(r.objects[object.KeyOf(u)], u)
	return nil
}

// typed returns an object as a Go type. mu is held.
func typed[T object.Object](r *Resource, key object.Key) (T, error) {
	var none T
	now := r.objects[key]
	if now == nil {
		return none, fmt.Errorf("reading %s %s: %w", r.Resource, key, r.notFound(key.Name))
	}
	o := object.New[T]()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(now.object.DeepCopy().Object, o); err != nil {
		return none, fmt.Errorf("reading %s %s: %w", r.Resource, key, err)
	}
	return o, nil
}
