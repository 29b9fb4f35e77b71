// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// unrecordedSide is the loop of Setpoint without a record of its runs.
const unrecordedSide = "setpoint-unrecorded"

// setpointObjects are read from an informer.
type setpointObjects[T object.Object] struct {
	cache.SharedInformer[T]
	writer client.Typed[T]
}

func (o setpointObjects[T]) get(_ context.Context, key object.Key) (object.Object, error) {
	return o.Get(key)
}

func (o setpointObjects[T]) patch(ctx context.Context, key object.Key, body []byte) error {
	_, err := o.writer.Patch(ctx, key, client.Patch{Type: types.MergePatchType, Data: body})
	return err
}

// newSetpointLoop makes a controller as the package controller says, with its
// defaults: it reads its own writes. Its connections are quiet, as those of a manager.
func newSetpointLoop[T object.Object](s *sideSpec, config *rest.Config, work loopWork) (*loop, error) {
	c, err := client.New(config, client.QuietConnections())
	if err != nil {
		return nil, err
	}
	l := &loop{}
	factory := cache.NewFactory(c, slog.New(slog.DiscardHandler))
	objects := setpointObjects[T]{cache.Informer[T](factory), client.For[T](c)}
	options := []controller.Option{controller.For(objects.SharedInformer), controller.Workers(s.Workers),
		controller.Log(slog.New(slog.DiscardHandler))}
	if s.Side == setpointSide { // as in a manager
		record, err := runs.New(runs.DefaultBytes)
		if err != nil {
			return nil, err
		}
		options = append(options, controller.Runs(record))
	}
	loop := controller.New("bench", func(ctx context.Context, request controller.Request) (controller.Result, error) {
		err := work(ctx, request.Key, objects)
		if err != nil {
			l.fail(err)
		}
		return controller.Result{}, err
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
