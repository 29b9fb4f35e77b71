// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Applier makes the objects of a kind that an owner manages be as they should, by
// server-side apply. It is safe for concurrent use.
//
// A reconcile applies what it wants each time, and need not look at what is there. Of
// the fields that it names, those that somebody changed are changed back; all others
// are left to whoever set them. A request is sent only if the object has another
// version than the one that the last apply of the same fields left: an apply of them
// would change nothing.
type Applier[T object.Object] struct {
	client  *client.Client
	objects cache.SharedInformer[T]
	manager string

	mu   sync.Mutex
	last map[object.Key]applied
}

// applied is an apply that was answered.
type applied struct {
	config  [sha256.Size]byte
	version string
}

// NewApplier returns an Applier that writes through c as the field manager of that
// name. informer should show the objects that are applied; give it to [Owns] too, so
// that a change of one starts a run.
func NewApplier[T object.Object](c *client.Client, informer cache.SharedInformer[T], manager string) *Applier[T] {
	return &Applier[T]{client: c, objects: informer, manager: manager, last: map[object.Key]applied{}}
}

// Apply makes the fields that are set in o true on the server, with owner as the
// managing controller, and returns the object as it is then. That may be the one in the
// cache: it is read-only. o is not changed; what counts is its JSON without status, so a
// field that is zero and left out of the JSON is not applied.
//
// It is an error if there is an object of that name that owner does not manage. The
// server is asked about one that the informer does not show: it may not select it.
func (a *Applier[T]) Apply(ctx context.Context, owner object.Object, o T) (T, error) {
	var none T
	kind, err := a.client.KindOf(o)
	if err != nil {
		return none, err
	}
	ownerKind, err := a.client.KindOf(owner)
	if err != nil {
		return none, err
	}
	key := object.KeyOf(o)
	here := a.objects.Snapshot().Get(key)
	foreign, err := a.foreign(ctx, owner, key, here)
	if err != nil {
		return none, fmt.Errorf("applying %s %s: looking whether it is there: %w", kind.Kind, key, err)
	}
	if foreign {
		return none, fmt.Errorf("applying %s %s: there is one already, and %s %s does not manage it; rename or delete one of them",
			kind.Kind, key, ownerKind.Kind, owner.GetName())
	}
	config, err := a.config(kind, owner, ownerKind, o)
	if err != nil {
		return none, fmt.Errorf("applying %s %s: %w", kind.Kind, key, err)
	}
	sum := sha256.Sum256(config)
	if here.Exists() && a.stands(key, applied{sum, string(here.Meta().Version)}) {
		return here.Object()
	}
	now, err := client.For[T](a.client).Apply(ctx, key, a.manager, json.RawMessage(config), client.Force())
	if err != nil {
		return none, fmt.Errorf("applying %s %s: %w", kind.Kind, key, err)
	}
	a.remember(key, applied{sum, now.GetResourceVersion()})
	return now, nil
}

// foreign reports whether there is an object that owner does not manage.
func (a *Applier[T]) foreign(ctx context.Context, owner object.Object, key object.Key, here cache.Item[T]) (bool, error) {
	if here.Exists() {
		ref := here.Meta().Controller()
		return ref == nil || ref.UID != owner.GetUID(), nil
	}
	resource, err := client.For[T](a.client).Resource(ctx)
	if err != nil {
		return false, err
	}
	there, err := client.ForResource[*metav1.PartialObjectMetadata](a.client, resource).Get(ctx, key)
	if client.AbsentAt(err, key) {
		return false, nil
	}
	return err == nil && !metav1.IsControlledBy(there, owner), err
}

// config is what is sent.
func (a *Applier[T]) config(kind schema.GroupVersionKind, owner object.Object, ownerKind schema.GroupVersionKind, o T) ([]byte, error) {
	if namespace := owner.GetNamespace(); namespace != "" && namespace != o.GetNamespace() {
		return nil, fmt.Errorf("its owner is in namespace %s; owners are of the same namespace, or of none", namespace)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it has no metadata")
	}
	delete(metadata, "creationTimestamp") // null, in the JSON of some types
	metadata["ownerReferences"] = []metav1.OwnerReference{OwnedBy(owner, ownerKind)}
	return json.Marshal(content)
}

// stands reports whether an apply would change nothing.
func (a *Applier[T]) stands(key object.Key, now applied) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[key] == now
}

// remember notes an apply. Objects that are gone are forgotten with all others when
// they could be the larger part, which costs those one request each.
func (a *Applier[T]) remember(key object.Key, now applied) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) > 2*a.objects.Snapshot().Len()+100 {
		clear(a.last)
	}
	a.last[key] = now
}
