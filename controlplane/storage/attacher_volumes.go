// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/controller"
)

// keepVolume puts the attacher's finalizer on a volume.
func (a *attacher) keepVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if slices.Contains(volume.Finalizers, AttacherFinalizer) {
		return volume, nil
	}
	next := volume.DeepCopy()
	next.Finalizers = append(next.Finalizers, AttacherFinalizer)
	kept, err := a.volumes.Update(ctx, next)
	if err != nil {
		return nil, fmt.Errorf("writing the attacher's finalizer of volume %s: %w", volume.Name, err)
	}
	return kept, nil
}

// reconcileVolume removes the attacher's finalizer from a volume that is being deleted, when no
// VolumeAttachment of it is left.
func (a *attacher) reconcileVolume(ctx context.Context, req controller.Request) (controller.Result, error) {
	volume, err := a.volumes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil || volume.DeletionTimestamp == nil || !slices.Contains(volume.Finalizers, AttacherFinalizer) {
		return controller.Result{}, err
	}
	for range a.ofVolume.Find(volume.Name) {
		return controller.Result{}, nil // its end is an event
	}
	next := volume.DeepCopy()
	next.Finalizers = without(next.Finalizers, AttacherFinalizer)
	if _, err := a.volumes.Update(ctx, next); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("removing the attacher's finalizer of the volume: %w", err)
	}
	return controller.Result{}, nil
}
