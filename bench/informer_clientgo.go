// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// clientGoInformer is client-go's shared informer of objects of type T, from its
// factory and so with its index by namespace.
type clientGoInformer[T object.Object] struct {
	shared clientgo.SharedIndexInformer
	lister listers.ResourceIndexer[T] // what the lister of every kind is made of
	told   clientgo.ResourceEventHandlerRegistration
	cancel context.CancelFunc
	ended  chan struct{}
}

func newClientGoInformer(k *kind, from *server, h *handler, transform bool) (informer, error) {
	switch k {
	case podKind:
		return makeClientGoInformer[*corev1.Pod](k, from, h, transform)
	case nodeKind:
		return makeClientGoInformer[*corev1.Node](k, from, h, transform)
	case configMapKind, randomKind:
		return makeClientGoInformer[*corev1.ConfigMap](k, from, h, transform)
	default:
		return makeClientGoInformer[*unstructured.Unstructured](k, from, h, transform)
	}
}

// clientGoShared returns the informer that client-go's factories make: of typed
// objects over protobuf, or of unstructured ones over JSON.
func clientGoShared(k *kind, from *server) (clientgo.SharedIndexInformer, error) {
	if k.encoding == wire.JSON {
		c, err := dynamic.NewForConfig(from.config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(c, 0).ForResource(k.groupVersionResource()).Informer(), nil
	}
	c, err := kubernetes.NewForConfig(overProtobuf(from.config))
	if err != nil {
		return nil, err
	}
	generic, err := informers.NewSharedInformerFactory(c, 0).ForResource(k.groupVersionResource())
	if err != nil {
		return nil, err
	}
	return generic.Informer(), nil
}

// overProtobuf returns a copy of a configuration by which client-go reads and writes protobuf.
func overProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = wire.Protobuf.MediaType()
	config.AcceptContentTypes = wire.Protobuf.MediaType() + "," + wire.JSON.MediaType()
	return config
}

func makeClientGoInformer[T object.Object](k *kind, from *server, h *handler, transform bool) (informer, error) {
	shared, err := clientGoShared(k, from)
	if err != nil {
		return nil, err
	}
	if transform {
		if err := shared.SetTransform(dropManagedFields); err != nil {
			return nil, err
		}
	}
	tell := func(o any) {
		typed, ok := o.(T)
		if !ok {
			h.fail(fmt.Errorf("a handler was notified of a %T, want a %T", o, typed))
			return
		}
		h.told(typed.GetResourceVersion(), typed.GetLabels()["team"])
	}
	i := &clientGoInformer[T]{
		shared: shared, cancel: func() {}, ended: make(chan struct{}),
		lister: listers.New[T](shared.GetIndexer(), k.groupVersionResource().GroupResource()),
	}
	i.told, err = shared.AddEventHandler(clientgo.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) },
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

func dropManagedFields(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

func (i *clientGoInformer[T]) sync(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx) //nolint:gosec // G118: stop calls it
	i.cancel = cancel
	go func() {
		defer close(i.ended)
		i.shared.RunWithContext(running)
	}()
	return until(ctx, "client-go's informer to sync", func() (bool, error) { return i.told.HasSynced(), nil })
}

func (i *clientGoInformer[T]) stop() {
	i.cancel()
	<-i.ended
}

func (i *clientGoInformer[T]) stored() (uint64, error) {
	return strconv.ParseUint(i.shared.GetIndexer().LastStoreSyncResourceVersion(), 10, 64)
}

func (i *clientGoInformer[T]) keys() []object.Key {
	var keys []object.Key
	for _, o := range i.shared.GetIndexer().List() {
		if typed, ok := o.(T); ok {
			keys = append(keys, object.KeyOf(typed))
		}
	}
	return keys
}

func (i *clientGoInformer[T]) get(key object.Key) (object.Object, error) {
	if key.Namespace == "" {
		return i.lister.Get(key.Name)
	}
	return listers.NewNamespaced(i.lister, key.Namespace).Get(key.Name)
}

func (i *clientGoInformer[T]) listNamespace(namespace string) (int, error) {
	all, err := listers.NewNamespaced(i.lister, namespace).List(labels.Everything())
	return len(all), err
}

func (i *clientGoInformer[T]) listSelected(selector labels.Selector) (int, error) {
	all, err := i.lister.List(selector)
	return len(all), err
}

func (i *clientGoInformer[T]) countSelected(selector labels.Selector) (n int, err error) {
	all, err := i.lister.List(selector)
	for _, o := range all {
		if o.GetResourceVersion() != "" {
			n++
		}
	}
	return n, err
}

func (i *clientGoInformer[T]) walk() int { return len(i.shared.GetIndexer().List()) }

// decodeAll reads the first n objects of a tape as client-go would have them.
func decodeAll(t *tape, n int) ([]*corev1.Pod, error) {
	if t.kind != podKind {
		return nil, errors.New("decoding a tape: it is not of Pods")
	}
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i] = &corev1.Pod{}
		if err := all[i].Unmarshal(t.append(nil, i, firstVersion+uint64(i))); err != nil {
			return nil, fmt.Errorf("decoding a tape: %w", err)
		}
	}
	return all, nil
}
