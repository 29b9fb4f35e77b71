// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// unawareSide is Setpoint's loop that does not wait for its own writes. The tests show with it that a run on a stale state counts.
const unawareSide = "setpoint-unaware"

type setpointConsistency struct {
	owners cache.SharedInformer[*corev1.ConfigMap]
	all    cache.SharedInformer[*corev1.ServiceAccount]
	writer client.Typed[*corev1.ServiceAccount]
}

func (o *setpointConsistency) owner(_ context.Context, key object.Key) (*corev1.ConfigMap, error) {
	return o.owners.Get(key)
}

func (o *setpointConsistency) children(_ context.Context, owner object.Key) ([]*corev1.ServiceAccount, error) {
	return o.all.Snapshot().List(owner.Namespace, nil)
}

func (o *setpointConsistency) patch(ctx context.Context, _ *corev1.ConfigMap, child object.Key, body []byte) error {
	_, err := o.writer.Patch(ctx, child, client.Patch{Type: types.MergePatchType, Data: body})
	return err
}

// newSetpointConsistency makes a controller with the defaults of package controller: a key waits in the queue for its own writes.
func newSetpointConsistency(s *sideSpec, w *consistencyWorld) (*loop, error) {
	c, err := client.New(&rest.Config{Host: s.Server, QPS: -1}, client.QuietConnections()) // as the manager does
	if err != nil {
		return nil, err
	}
	l := &loop{}
	factory := cache.NewFactory(c, slog.New(slog.DiscardHandler))
	o := &setpointConsistency{cache.Informer[*corev1.ConfigMap](factory), cache.Informer[*corev1.ServiceAccount](factory), client.For[*corev1.ServiceAccount](c)}
	_, err = o.owners.AddHandler(func(e cache.Event[*corev1.ConfigMap]) {
		m := e.Item().Meta()
		w.ownerArrived(m.Key, m.Labels.Get(noteLabel))
	}, cache.HandlerOptions{Name: "bench", EveryStep: true})
	if err != nil {
		return nil, err
	}
	_, err = o.all.AddHandler(func(e cache.Event[*corev1.ServiceAccount]) {
		m := e.Item().Meta()
		w.childArrived(m.Key, m.Labels.Get(gottenLabel))
	}, cache.HandlerOptions{Name: "bench", EveryStep: true})
	if err != nil {
		return nil, err
	}
	options := []controller.Option{
		controller.For(o.owners), controller.Workers(s.Workers), controller.Log(slog.New(slog.DiscardHandler)),
		controller.Watches(o.all, func(item cache.Item[*corev1.ServiceAccount], add func(object.Key)) {
			add(object.Key{Namespace: item.Key().Namespace, Name: ownerName})
		}),
	}
	if s.Side == unawareSide {
		options = append(options, controller.WriteWait(0))
	}
	loop := controller.New("bench", func(ctx context.Context, request controller.Request) (controller.Result, error) {
		again, err := w.reconcile(ctx, request.Key, o)
		if err != nil {
			l.fail(err)
		}
		return controller.Result{After: again}, err
	}, options...)
	l.run = func(ctx context.Context) error {
		// The informers run longer than their readers.
		informing, stop := context.WithCancel(context.WithoutCancel(ctx))
		var all sync.WaitGroup
		all.Go(func() {
			if err := factory.Run(informing); err != nil {
				l.fail(err)
			}
		})
		err := loop.Run(ctx)
		stop()
		all.Wait()
		return err
	}
	return l, nil
}
