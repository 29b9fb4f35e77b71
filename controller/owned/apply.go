// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned

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

// Applier brings the objects that an owner manages to their desired state, by server-side
// apply. It is safe for concurrent use.
//
// A reconcile applies the desired state each time, and does not compare it with the actual
// one. Apply changes back the fields that it names; it leaves all other fields to their
// managers. It sends a request only if the object has another version than after the last
// apply of the same fields, since such an apply would change nothing.
type Applier[T object.Object] struct {
	objects cache.SharedInformer[T]
	manager string

	mu   sync.Mutex
	last map[object.Key]applied
}

// applied is an apply that has succeeded.
type applied struct {
	config  [sha256.Size]byte
	version string
}

// NewApplier returns an Applier that writes through informer as the field manager of that
// name. informer should show the objects that are applied. Pass it to controller.Owns too, so
// that a change of one starts a run.
func NewApplier[T object.Object](informer cache.SharedInformer[T], manager string) *Applier[T] {
	return &Applier[T]{objects: informer, manager: manager, last: map[object.Key]applied{}}
}

// Apply applies the fields that are set in o, with owner as the managing controller, and
// returns the object as it is then. The result is read-only: it may be the object in the
// cache. Apply does not change o. It applies the JSON of o without status, so a zero field
// that the JSON omits is not applied.
//
// It is an error if an object of that name exists that owner does not manage. Where the
// informer does not show the object, Apply reads it from the server: the informer may not
// select it.
func (a *Applier[T]) Apply(ctx context.Context, owner object.Object, o T) (T, error) {
	var none T
	kinds := a.objects.Handle().Client() // any client of the program knows its types
	kind, err := kinds.KindOf(o)
	if err != nil {
		return none, err
	}
	ownerKind, err := kinds.KindOf(owner)
	if err != nil {
		return none, err
	}
	key := object.KeyOf(o)
	here := a.objects.Snapshot().Get(key)
	foreign, err := a.foreign(ctx, owner, key, here)
	if err != nil {
		return none, fmt.Errorf("applying %s %s: checking whether it exists: %w", kind.Kind, key, err)
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
	now, err := a.objects.Apply(ctx, key, a.manager, json.RawMessage(config), client.Force())
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
	there, err := a.objects.Server().Get(ctx, key)
	if client.AbsentAt(err, key) {
		return false, nil
	}
	return err == nil && !metav1.IsControlledBy(there, owner), err
}

// config returns the body of the request.
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
	metadata["ownerReferences"] = []metav1.OwnerReference{By(owner, ownerKind)}
	return json.Marshal(content)
}

// stands reports whether an apply would change nothing.
func (a *Applier[T]) stands(key object.Key, now applied) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[key] == now
}

// remember records an apply. When objects that are gone could be the larger part, it forgets
// all objects, which costs each existing one a request.
func (a *Applier[T]) remember(key object.Key, now applied) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) > 2*a.objects.Snapshot().Len()+100 {
		clear(a.last)
	}
	a.last[key] = now
}
