// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// subject is an object that counts.
type subject struct {
	meta object.Meta
	// read decodes the object. The result has the Go type that package accounting takes.
	read func() (any, error)
}

// view shows the objects of one kind, and says when one of them changes.
type view interface {
	// get returns an object as the cache shows it now.
	get(key object.Key) (subject, bool)
	// in returns the objects of a namespace as the cache shows them now.
	in(namespace string) iter.Seq2[object.Key, subject]
	// controlledBy returns the objects whose managing controller has a UID.
	controlledBy(namespace string, uid types.UID) iter.Seq2[object.Key, subject]
	// list reads the objects of a namespace from the server.
	list(ctx context.Context, namespace string) ([]subject, error)
	// synced is closed when the cache has the objects, and the handler has handled them.
	synced() <-chan struct{}
	// isCurrent reports whether no change waits for the handler.
	isCurrent() bool
	// trouble is why the cache is not current, nil for nothing.
	trouble() error
	close()
}

// changed is called for each change of an object that may change what it counts for, with its
// newest metadata.
type changed func(m object.Meta, cause workqueue.Cause)

// watched is what to watch of a kind: its objects, or their metadata alone.
type watched struct {
	resource object.Resource
	whole    bool
}

// open begins to watch a kind.
func open(h controller.Host, w watched, f changed) (view, error) {
	if !w.whole {
		return openKind[*metav1.PartialObjectMetadata](h, w, f, appears)
	}
	switch kindOf(w.resource) {
	case accounting.Pods:
		return openKind[*corev1.Pod](h, w, f, nil)
	case accounting.Services:
		return openKind[*corev1.Service](h, w, f, nil)
	case accounting.PersistentVolumeClaims:
		return openKind[*corev1.PersistentVolumeClaim](h, w, f, nil)
	case accounting.ResourceClaims:
		return openKind[*resourcev1.ResourceClaim](h, w, f, nil)
	case deviceClasses:
		return openKind[*resourcev1.DeviceClass](h, w, f, nil)
	}
	return nil, fmt.Errorf("watching %s: nothing but the number of its objects is counted", w.resource)
}

// informed is a view by an informer.
type informed[T object.Object] struct {
	informer cache.SharedInformer[T]
	handler  *cache.Registration
}

func openKind[T object.Object](h controller.Host, w watched, f changed, matters controller.Predicate[T]) (view, error) {
	v := &informed[T]{informer: cache.Informer[T](h, cache.OfKind(w.resource.GroupVersionKind()))}
	var err error
	v.handler, err = v.informer.AddHandler(func(e cache.Event[T]) {
		// The run loads the objects of the first list. See [watches.await].
		if e.Initial || matters != nil && !matters(e) {
			return
		}
		m := e.Item().Meta()
		f(m, workqueue.Cause{
			Source: w.resource.Plural, Verb: e.Kind.String(), Version: string(m.Version),
			Ref: object.Ref{Group: w.resource.Group, Kind: w.resource.Kind, Key: m.Key, UID: m.UID},
		})
	}, cache.HandlerOptions{Name: Name})
	if err != nil {
		v.informer.Release()
		return nil, fmt.Errorf("watching %s: %w", w.resource, err)
	}
	return v, nil
}

// appears chooses the changes that matter where only the number of objects counts.
func appears(e cache.Event[*metav1.PartialObjectMetadata]) bool { return e.Kind != cache.Updated }

func (v *informed[T]) get(key object.Key) (subject, bool) {
	item := v.informer.Snapshot().Get(key)
	if !item.Exists() {
		return subject{}, false
	}
	return subjectOf(item), true
}

func (v *informed[T]) in(namespace string) iter.Seq2[object.Key, subject] {
	return subjects(v.informer.Snapshot().Namespace(namespace))
}

func (v *informed[T]) controlledBy(namespace string, uid types.UID) iter.Seq2[object.Key, subject] {
	return subjects(v.informer.Snapshot().ControlledBy(namespace, uid))
}

func (v *informed[T]) list(ctx context.Context, namespace string) ([]subject, error) {
	objects, _, err := v.informer.Server().List(ctx, client.Selection{Namespace: namespace, WithoutManagedFields: true})
	if err != nil {
		return nil, err
	}
	all := make([]subject, len(objects))
	for i, o := range objects {
		all[i] = subject{meta: object.MetaOf(o), read: func() (any, error) { return o, nil }}
	}
	return all, nil
}

func (v *informed[T]) synced() <-chan struct{} { return v.handler.Synced() }

func (v *informed[T]) isCurrent() bool {
	s := v.handler.Status()
	return s.Waiting == 0 && s.Busy == 0
}

func (v *informed[T]) trouble() error { return v.informer.Trouble() }

func (v *informed[T]) close() {
	v.handler.Remove()
	v.informer.Release()
}

func subjectOf[T object.Object](item cache.Item[T]) subject {
	return subject{meta: item.Meta(), read: func() (any, error) { return item.Object() }}
}

func subjects[T object.Object](items iter.Seq2[object.Key, cache.Item[T]]) iter.Seq2[object.Key, subject] {
	return func(yield func(object.Key, subject) bool) {
		for key, item := range items {
			if !yield(key, subjectOf(item)) {
				return
			}
		}
	}
}
