// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// setpointInformer is Setpoint's informer of objects of type T.
type setpointInformer[T object.Object] struct {
	factory *cache.Factory
	shared  cache.SharedInformer[T]
	told    *cache.Registration
	cancel  context.CancelFunc
	ended   chan struct{}
}

func newSetpointInformer(k *kind, from *server, h *handler, budget int64) (informer, error) {
	switch k {
	case podKind:
		return makeSetpointInformer[*corev1.Pod](k, from, h, budget)
	case nodeKind:
		return makeSetpointInformer[*corev1.Node](k, from, h, budget)
	case configMapKind, randomKind:
		return makeSetpointInformer[*corev1.ConfigMap](k, from, h, budget)
	default:
		return makeSetpointInformer[*unstructured.Unstructured](k, from, h, budget)
	}
}

func makeSetpointInformer[T object.Object](k *kind, from *server, h *handler, budget int64) (informer, error) {
	c, err := client.New(from.config)
	if err != nil {
		return nil, err
	}
	var options []cache.FactoryOption
	if budget > 0 {
		options = append(options, cache.DecodedBudget(budget))
	}
	i := &setpointInformer[T]{factory: cache.NewFactory(c, slog.New(slog.DiscardHandler), options...), cancel: func() {}, ended: make(chan struct{})}
	i.shared = cache.Informer[T](i.factory, cache.OfKind(k.groupVersionKind()))
	// The handler is notified of every change, as with client-go: merged events could not be
	// compared.
	i.told, err = i.shared.AddHandler(func(e cache.Event[T]) {
		item := e.Item()
		if h.decode.Load() {
			if _, err := item.Object(); err != nil {
				h.fail(err)
			}
		}
		meta := item.Meta()
		h.told(string(meta.Version), meta.Labels.Get("team"))
	}, cache.HandlerOptions{Name: "bench", EveryStep: true})
	if err != nil {
		return nil, err
	}
	return i, nil
}

func (i *setpointInformer[T]) sync(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx) //nolint:gosec // G118: stop calls it
	i.cancel = cancel
	go func() {
		defer close(i.ended)
		_ = i.factory.Run(running) // an error only where it runs already
	}()
	select {
	case <-i.told.Synced():
		return nil
	case <-ctx.Done():
		return i.shared.WaitForSync(ctx) // knows what is in the way
	}
}

func (i *setpointInformer[T]) stop() {
	i.cancel()
	<-i.ended
}

func (i *setpointInformer[T]) stored() (uint64, error) {
	return strconv.ParseUint(string(i.shared.Snapshot().Version()), 10, 64)
}

func (i *setpointInformer[T]) keys() []object.Key {
	var keys []object.Key
	for key := range i.shared.All() {
		keys = append(keys, key)
	}
	return keys
}

func (i *setpointInformer[T]) get(key object.Key) (object.Object, error) { return i.shared.Get(key) }

func (i *setpointInformer[T]) listNamespace(namespace string) (int, error) {
	all, err := i.shared.Snapshot().List(namespace, nil)
	return len(all), err
}

func (i *setpointInformer[T]) listSelected(selector labels.Selector) (int, error) {
	all, err := i.shared.List(selector)
	return len(all), err
}

func (i *setpointInformer[T]) countSelected(selector labels.Selector) (n int, err error) {
	for _, item := range i.shared.Snapshot().Select("", selector) {
		if item.Version() != "" {
			n++
		}
	}
	return n, nil
}

func (i *setpointInformer[T]) walk() int {
	n := 0
	for range i.shared.All() {
		n++
	}
	return n
}
