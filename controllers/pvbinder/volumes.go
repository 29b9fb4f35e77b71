// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// reconcileVolume takes the next step of one volume that no claim is bound to or being bound to.
func (b *binder) reconcileVolume(ctx context.Context, req controller.Request) (controller.Result, error) {
	volume, err := b.volumes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		b.pools.forgetVolume(req.Key.Name)
		b.metrics.succeeds(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if !isFree(volume) {
		b.pools.forgetVolume(volume.Name)
	}
	result, err := b.stepVolume(ctx, volume)
	if client.AbsentAt(err, req.Key) {
		return controller.Result{}, nil
	}
	return result, err
}

func (b *binder) stepVolume(ctx context.Context, volume *corev1.PersistentVolume) (controller.Result, error) {
	if next := migratedVolume(volume); next != nil {
		var err error
		if volume, err = b.volumes.Update(ctx, next); err != nil {
			return controller.Result{}, fmt.Errorf("writing the annotation of the driver or a finalizer: %w", err)
		}
	}
	v, err := b.volumeView(ctx, volume)
	if err != nil {
		return controller.Result{}, err
	}
	p := decideVolume(v)
	if p.reason != nil {
		controller.Because(ctx, *p.reason)
	}
	switch {
	case p.available && volume.Status.Phase != corev1.VolumeAvailable:
		return controller.Result{}, b.writePhase(ctx, volume, corev1.VolumeAvailable)
	case isFree(volume):
		return controller.Result{}, b.offer(volume)
	case p.release:
		return b.release(ctx, volume)
	case p.unbind:
		return controller.Result{}, b.unbind(ctx, volume)
	case p.mismatch:
		b.recorder.Warning(volume, reasonVolumeMismatch, actionBind,
			"Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.", v.claim.Name)
		b.recorder.Warning(v.claim, reasonVolumeMismatch, actionBind,
			"Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode.", volume.Name)
	}
	return whileBehind(v.behind), nil
}

// whileBehind returns the result of a run in which the cache was behind the server, or was not.
func whileBehind(behind bool) controller.Result {
	if behind {
		return controller.Result{After: controllers.Lagging}
	}
	return controller.Result{}
}

// volumeView reads what a volume is decided by.
func (b *binder) volumeView(ctx context.Context, volume *corev1.PersistentVolume) (*volumeView, error) {
	v := &volumeView{volume: volume}
	if volume.Spec.ClaimRef == nil {
		asking, err := cache.Objects(b.naming.Find(volume.Name))
		if err != nil {
			return nil, err
		}
		for _, claim := range asking {
			if v.asks == nil || fits(volume, claim) == nil {
				v.asks = claim
			}
		}
		return v, nil
	}
	claim, err := b.claims.Get(claimOf(volume))
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil && volumes.Refers(volume, claim) {
		v.claim = claim
		return v, nil
	}
	if ref := volume.Spec.ClaimRef; ref.UID == "" || volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed {
		return v, nil
	}
	v.claim, err = b.confirm(ctx, volume)
	v.behind = v.claim != nil
	return v, err
}

// confirm reads the claim of a volume from the server: the cache may not have it yet, and what
// follows from its absence is the loss of the data. It returns nil if the claim is gone.
func (b *binder) confirm(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	claim, err := b.claims.Server().Get(ctx, claimOf(volume))
	switch {
	case client.AbsentAt(err, claimOf(volume)): // not any 404: what is decided from it may delete the volume
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading claim %s, which the cache does not have: %w", claimOf(volume), err)
	case !volumes.Refers(volume, claim):
		return nil, nil
	}
	return claim, nil
}

// offer enqueues the claim that waits for a volume like this one.
func (b *binder) offer(volume *corev1.PersistentVolume) error {
	name := volumes.ClassOfVolume(volume)
	if class, err := b.classes.Get(object.Key{Name: name}); err == nil && volumes.WaitsForConsumer(class) {
		return nil // the scheduler chooses
	}
	item := b.volumes.Snapshot().Get(object.Key{Name: volume.Name})
	if !item.Exists() {
		return nil
	}
	claim, found, err := b.pools.of(name).offer(item, b.waiting.Find(name))
	if err != nil || !found {
		return err
	}
	b.claimLoop.Queue().AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "volume " + volume.Name, Verb: workqueue.Enqueued}}, claim)
	return nil
}
