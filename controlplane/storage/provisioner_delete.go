// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// volumeOfAttachment adds the volume of an attachment.
func volumeOfAttachment(item cache.Item[*storagev1.VolumeAttachment], add func(object.Key)) {
	if attachment, err := item.Object(); err == nil && attachment.Spec.Source.PersistentVolumeName != nil {
		add(object.Key{Name: *attachment.Spec.Source.PersistentVolumeName})
	}
}

// reconcileVolume deletes a volume of the driver that is released and is not to be kept.
func (s *provisioner) reconcileVolume(ctx context.Context, req controller.Request) (controller.Result, error) {
	volume, err := s.volumes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		s.attempts.forget(req.Key, Delete)
		return controller.Result{}, nil
	}
	if err != nil || volume.Annotations[volumes.ProvisionedBy] != Driver {
		return controller.Result{}, err
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return controller.Result{}, s.letGo(ctx, volume)
	}
	if volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil && !slices.Contains(volume.Finalizers, volumes.ExternalFinalizer) {
		return controller.Result{}, nil
	}
	for _, item := range s.attached.Find(volume.Name) {
		if attachment, err := item.Object(); err == nil {
			s.recorder.Warning(volume, reasonNotDeleted, actionDelete, "persistentvolume %s is still attached to node %s", volume.Name, attachment.Spec.NodeName)
			return controller.Result{}, nil // its end is an event
		}
	}
	k, _ := knobsOf(Delete, volume.Annotations, nil)
	v := s.attempts.judge(req.Key, volume.UID, Delete, "", k, s.now())
	switch {
	case v.err != nil:
		s.recorder.Warning(volume, reasonNotDeleted, actionDelete, "%v", v.err)
		return controller.Result{After: v.wait}, nil
	case !v.done:
		return controller.Result{After: v.wait}, nil
	}
	if volume.DeletionTimestamp == nil {
		if err := s.volumes.Delete(ctx, req.Key, client.IfUID(volume.UID)); err != nil && !apierrors.IsNotFound(err) {
			return controller.Result{}, fmt.Errorf("deleting the volume: %w", err)
		}
		if volume, err = s.volumes.Server().Get(ctx, req.Key); err != nil {
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return controller.Result{}, err
		}
	}
	return controller.Result{}, s.letGo(ctx, volume)
}

// letGo removes the driver's finalizer of a volume.
func (s *provisioner) letGo(ctx context.Context, volume *corev1.PersistentVolume) error {
	if !slices.Contains(volume.Finalizers, volumes.ExternalFinalizer) {
		return nil
	}
	next := volume.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == volumes.ExternalFinalizer })
	if _, err := s.volumes.Update(ctx, next); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the finalizer of the volume: %w", err)
	}
	return nil
}
