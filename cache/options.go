// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// InformerOption selects the objects of an informer, and how it holds them.
type InformerOption func(*choice)

type choice struct {
	kind      schema.GroupVersionKind
	selection client.Selection
	managed   bool
	bare      bool
	named     bool // the kind was given by OfKind
	exact     bool // the informer has objects of the type, not only what makes them
	pageSize  int64
	gather    time.Duration
	onTrouble func(error)
	resource  object.Resource // zero: looked up by the kind
	// noBookmarks makes watches without bookmarks.
	noBookmarks bool
	transform   func(object.Object) (object.Object, error)
	messages    *wire.Schema // of unstructured objects that travel as protobuf; nil: they are JSON
	predecessor *informer
}

// alone reports whether an informer of the choice is not shared. Two functions cannot be compared.
func (c *choice) alone() bool {
	return c.transform != nil || c.onTrouble != nil || c.resource != (object.Resource{}) || c.noBookmarks || c.predecessor != nil
}

// OfKind sets the kind, for types of several kinds: unstructured objects and metadata.
func OfKind(kind schema.GroupVersionKind) InformerOption { return func(c *choice) { c.kind = kind } }

// FromProtobuf has the server send unstructured objects of a built-in kind as protobuf, which takes it and the network less than
// JSON. The objects are the same. schema is that of the kind's Go type. Objects of other types are not concerned.
func FromProtobuf(schema *wire.Schema) InformerOption {
	return func(c *choice) { c.messages = schema }
}

// InNamespace leaves out the objects of other namespaces.
func InNamespace(namespace string) InformerOption {
	return func(c *choice) { c.selection.Namespace = namespace }
}

// WithLabels leaves out the objects that a label selector does not match.
func WithLabels(selector string) InformerOption {
	return func(c *choice) { c.selection.Labels = selector }
}

// WithFields leaves out the objects that a field selector does not match.
func WithFields(selector string) InformerOption {
	return func(c *choice) { c.selection.Fields = selector }
}

// WithManagedFields keeps metadata.managedFields, which are half of the size of many objects.
// Other informers drop them, and request objects without them, which servers from Kubernetes
// 1.38 on can send.
func WithManagedFields() InformerOption { return func(c *choice) { c.managed = true } }

// WithoutTypeMeta leaves apiVersion and kind empty in objects of Go types, as the decoders of
// client-go do. Other informers leave them as the server sent them: JSON has them, protobuf has
// not. Unstructured objects and metadata have them always.
func WithoutTypeMeta() InformerOption { return func(c *choice) { c.bare = true } }

// OnTrouble calls f with each failure to list or watch. The informer tries again when f has
// returned, after a pause. An informer with such a function is not shared.
func OnTrouble(f func(error)) InformerOption { return func(c *choice) { c.onTrouble = f } }

// OfResource sets the resource of the kind, for programs that have looked it up. The resource of
// another informer is looked up in the server's discovery. An informer with a resource is not
// shared.
func OfResource(r object.Resource) InformerOption {
	return func(c *choice) { c.resource, c.kind = r, r.GroupVersionKind() }
}

// WithoutBookmarks requests watches without bookmarks, for servers that do not handle them well. The
// informer cannot list by a watch then, and lists again more often. It is not shared.
func WithoutBookmarks() InformerOption { return func(c *choice) { c.noBookmarks = true } }

// PageSize makes the informer list in pages of n objects. Servers from Kubernetes 1.31 on
// answer a whole list from memory, and read pages from etcd. Pages are for servers that are
// older or have little memory.
func PageSize(n int64) InformerOption { return func(c *choice) { c.pageSize = n } }

// Gathers lets changes wait for up to d before the informer reads them, so that several cost one read, one change of the
// store and one wake-up of each handler. It is for kinds whose objects change often and are not urgent, such as the Leases of
// Nodes: 1,000 Nodes renew 100 a second, and each alone costs more for waking up than for what it says. Users of a shared informer
// wait for as long as the least of them says, and one that says nothing has nothing wait. The first state does not wait.
func Gathers(d time.Duration) InformerOption { return func(c *choice) { c.gather = d } }

// Transform changes each object before it is stored, to drop what the program does not need. It
// costs a decode and an encode for each object. f is called once at a time, for each object
// that arrives, the last state of a deleted one included. It must not change namespace, name,
// UID and resourceVersion.
//
// If f returns an error or panics for an object, the cache keeps the last state of that object
// for which f succeeded, if there is one, and goes on with all others. The log,
// [SharedInformer.Trouble] and [Status] name the object and the error. The informer retries f
// with that state every half minute, until f succeeds or the object changes.
//
// An informer with a transform is not shared, as two functions cannot be compared.
func Transform[T object.Object](f func(T) (T, error)) InformerOption {
	return func(c *choice) {
		c.transform = func(o object.Object) (object.Object, error) { return f(o.(T)) }
	}
}
