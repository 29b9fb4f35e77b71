// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/controller/worlds"
	"github.com/setpoint-io/setpoint/object"
)

const (
	name    = "bucket-controller"
	label   = "example.com/bucket" // of the ConfigMaps that stand for buckets
	cleanup = "example.com/bucket" // the finalizer: the bucket goes before the ConfigMap

	callLimit = 10 * time.Second // of one call of the cloud
	recheck   = 10 * time.Minute // after which a bucket is observed again
)

type reconciler struct {
	cloud  *cloud
	maps   cache.SharedInformer[*corev1.ConfigMap]
	driver worlds.Driver[object.Key, bucket, bucket]
}

func newController(h controller.Host, c *cloud) *controller.Controller {
	r := &reconciler{cloud: c, maps: cache.Informer[*corev1.ConfigMap](h, cache.WithLabels(label+"=true"))}
	r.driver = worlds.Driver[object.Key, bucket, bucket]{
		World:   worlds.New[object.Key, bucket](worlds.Options{}),
		Desired: r.desired,
		Observe: func(ctx context.Context, key object.Key) (*bucket, error) {
			ctx, cancel := context.WithTimeout(ctx, callLimit)
			defer cancel()
			return c.get(ctx, nameOf(key))
		},
		Next:    r.next,
		Recheck: recheck,
	}
	return controller.New(name, r.reconcile,
		controller.For(r.maps), controller.Workers(20),
		controller.Shows("operations", r.driver.World.Lines))
}

// nameOf returns the name of a bucket in the cloud. It is the same for each process, so a process
// that starts finds the buckets of the one before.
func nameOf(key object.Key) string { return key.Namespace + "--" + key.Name }

// reconcile brings one bucket to its desired state.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	m, err := r.maps.Get(req.Key)
	if err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, err
	}
	exists := err == nil
	if exists && m.DeletionTimestamp == nil {
		// From here on there may be a bucket, so the ConfigMap must not go without us.
		if m, err = finalizer.Add(ctx, r.maps, m, cleanup); err != nil {
			return controller.Result{}, err
		}
	}
	result, err := r.driver.Reconcile(ctx, req)
	if err != nil || !exists || m.DeletionTimestamp == nil {
		return result, err
	}
	if _, known := r.driver.World.Actual(req.Key); known != worlds.Unknown {
		return result, nil // the bucket is not gone yet
	}
	return controller.Result{}, finalizer.Remove(ctx, r.maps, m, cleanup)
}

// desired returns the bucket that a ConfigMap asks for.
func (r *reconciler) desired(_ context.Context, key object.Key) (*bucket, error) {
	m, err := r.maps.Get(key)
	if apierrors.IsNotFound(err) || err == nil && m.DeletionTimestamp != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &bucket{Region: m.Data["region"]}, nil
}

// next compares a bucket with what it should be.
func (r *reconciler) next(key object.Key, desired, actual *bucket) *worlds.Step[bucket] {
	put := func(ctx context.Context) (*bucket, error) { return r.cloud.put(ctx, nameOf(key), *desired) }
	switch {
	case desired == nil && actual == nil:
		return nil
	case desired == nil:
		return &worlds.Step[bucket]{Name: "remove", Limit: callLimit, Do: func(ctx context.Context) (*bucket, error) { return r.cloud.remove(ctx, nameOf(key)) }}
	case actual == nil:
		return &worlds.Step[bucket]{Name: "create", Limit: callLimit, Do: put}
	case *actual != *desired:
		return &worlds.Step[bucket]{Name: "move", Limit: callLimit, Do: put}
	}
	return nil
}
