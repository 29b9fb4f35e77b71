// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Resource is a resource of a [Server], which is embedded: its methods are those of the
// whole server. The hooks of a Resource are called for its own requests alone.
type Resource struct {
	*Server
	object.Resource
	facts

	Faults
	objects map[object.Key]*state
	manager *manager // made by the first apply
}

// Option says what a custom resource is like. The built-in ones are known.
type Option func(*Resource)

// WithStatus gives a custom resource the subresource status.
func WithStatus() Option { return func(r *Resource) { r.status = true } }

// WithShortNames gives a custom resource the short names that discovery shows, such as "po"
// for Pods.
func WithShortNames(names ...string) Option { return func(r *Resource) { r.shortNames = names } }

// WithFields names fields that a custom resource can be selected by, such as
// "spec.color".
func WithFields(paths ...string) Option {
	return func(r *Resource) {
		for _, path := range paths {
			r.fields[path] = selectable{path: path}
		}
	}
}

// Serve has the server serve a resource, from now on. Serving one again returns it with
// its objects; the options are those of the first call.
func (s *Server) Serve(resource object.Resource, options ...Option) *Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		if r.Resource == resource {
			return r
		}
	}
	r := &Resource{Server: s, Resource: resource, facts: factsOf(resource), objects: map[object.Key]*state{}}
	r.Faults.server = s
	for _, option := range options {
		option(r)
	}
	s.resources = append(s.resources, r)
	return r
}

// Withdraw has the server serve a resource no longer, as when its definition was
// deleted: its watches end, and its objects are gone without an event.
func (s *Server) Withdraw(resource object.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources = slices.DeleteFunc(s.resources, func(r *Resource) bool { return r.Resource == resource })
	s.wake()
}

// Of returns a resource that the server serves. It panics if there is none: that is a
// mistake in the test.
func (s *Server) Of(resource object.Resource) *Resource {
	if r := s.find(resource.Group, resource.Version, resource.Plural); r != nil {
		return r
	}
	panic(fmt.Sprintf("fakeapi: the server does not serve %s; call Serve", resource))
}

func (s *Server) find(group, version, plural string) *Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		if r.Group == group && r.Version == version && r.Plural == plural {
			return r
		}
	}
	return nil
}

// groupResource is what errors name.
func (r *Resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// Add stores an object as it is, with its status, as if it had been there before the test.
// It gets a UID, a creation time and a generation if it has none. An object of the same
// name is an error.
func (r *Resource) Add(o metav1.Object) error {
	return r.store(o, func(now *state) error {
		if now != nil {
			return fmt.Errorf("adding %s %s: it is there already", r.Resource, object.KeyOf(o))
		}
		return nil
	})
}

// Put stores an object as it is, with its status, in place of the one of its name. The
// fields of an unstructured object may be such as its kind cannot have; clients then cannot
// read it.
func (r *Resource) Put(o metav1.Object) error { return r.store(o, func(*state) error { return nil }) }

// Remove deletes an object at once, whatever its finalizers. It reports whether there was
// one.
func (r *Resource) Remove(key object.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.objects[key]
	if now != nil {
		r.commit(r, wire.Deleted, now.object.DeepCopy())
	}
	return now != nil
}

// store writes an object without the rules for clients.
func (r *Resource) store(o metav1.Object, check func(now *state) error) error {
	u, err := r.fromGo(o)
	if err != nil {
		return fmt.Errorf("storing %s %s: %w", r.Resource, object.KeyOf(o), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.objects[object.KeyOf(u)]
	if err := check(now); err != nil {
		return err
	}
	r.storeOver(now, u)
	return nil
}

// storeOver writes an object in place of the one of its name, which is nil if there is
// none. mu is held.
func (r *Resource) storeOver(now *state, u *unstructured.Unstructured) {
	kind := wire.Added
	if now != nil {
		kind = wire.Modified
		if u.GetUID() == "" {
			u.SetUID(now.object.GetUID())
		}
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.Now())
	}
	if u.GetUID() == "" {
		u.SetUID(r.random.uid())
	}
	if u.GetGeneration() == 0 && r.generation {
		u.SetGeneration(1)
	}
	r.commit(r, kind, u)
}

// fromGo turns a Go object into what the server stores.
func (r *Resource) fromGo(o metav1.Object) (*unstructured.Unstructured, error) {
	if o.GetName() == "" || r.Namespaced != (o.GetNamespace() != "") {
		return nil, fmt.Errorf("it needs a name, and a namespace if its kind has namespaces")
	}
	u, ok := o.(*unstructured.Unstructured)
	if ok {
		u = u.DeepCopy() // the caller may change its own
	} else {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, err
		}
		u = &unstructured.Unstructured{Object: content}
	}
	u.SetGroupVersionKind(r.GroupVersionKind())
	return u, nil
}

// Get returns an object, which is the caller's, or nil.
func (r *Resource) Get(key object.Key) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.objects[key]; now != nil {
		return now.object.DeepCopy()
	}
	return nil
}

// UID returns an object's UID, or "".
func (r *Resource) UID(key object.Key) types.UID {
	if o := r.Get(key); o != nil {
		return o.GetUID()
	}
	return ""
}

// Keys returns the keys of all objects, in order.
func (r *Resource) Keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for key := range r.objects {
		all = append(all, key.String())
	}
	slices.Sort(all)
	return all
}

// newTyped returns an empty object of a built-in kind's Go type, or nil.
func (r *Resource) newTyped() runtime.Object {
	o, err := scheme.Scheme.New(r.GroupVersionKind())
	if err != nil {
		return nil
	}
	return o
}
