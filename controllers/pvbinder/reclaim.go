// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/shortlist"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// release marks a volume whose claim is gone as Released, and does with it what its reclaim policy
// says. A volume that is Failed stays so, for the user to see, and is reclaimed all the same.
//
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, reclaimVolume.
func (b *binder) release(ctx context.Context, volume *corev1.PersistentVolume) (controller.Result, error) {
	if phase := volume.Status.Phase; phase != corev1.VolumeReleased && phase != corev1.VolumeFailed {
		var err error
		if volume, err = b.volumes.UpdateStatus(ctx, inPhase(volume, corev1.VolumeReleased)); err != nil {
			return controller.Result{}, fmt.Errorf("writing the phase of the volume: %w", err)
		}
	}
	claim := claimOf(volume).String()
	if driver := volume.Annotations[volumes.MigratedTo]; driver != "" {
		controller.Because(ctx, waitsForDeleter(volume, driver))
		return controller.Result{}, nil
	}
	switch volume.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimRetain:
		controller.Because(ctx, reason(codeRetained, "the claim {claim} is gone, and the reclaim policy Retain keeps the volume with its data",
			"an administrator deletes the volume, or removes spec.claimRef to have it used again", "claim", claim))
		return controller.Result{}, nil
	case corev1.PersistentVolumeReclaimRecycle:
		return b.recycle(ctx, volume)
	case corev1.PersistentVolumeReclaimDelete:
		b.metrics.operations.begin(volume, b.deleterName(volume), operationDelete)
		return controller.Result{}, b.counted(volume, b.delete(ctx, volume))
	}
	return controller.Result{}, b.fail(ctx, volume, reasonUnknownPolicy, "Volume has unrecognized PersistentVolumeReclaimPolicy")
}

// waitsForDeleter is the reason of a volume that its driver deletes.
func waitsForDeleter(volume *corev1.PersistentVolume, driver string) controller.Reason {
	return reason(codeDeleter, "the claim {claim} is gone, and the driver {driver} has not deleted the volume", "the driver deletes the volume",
		"claim", claimOf(volume), "driver", driver)
}

// fail marks a volume as Failed, with an Event.
func (b *binder) fail(ctx context.Context, volume *corev1.PersistentVolume, why, note string) error {
	next := inPhase(volume, corev1.VolumeFailed)
	if next == nil {
		return nil
	}
	next.Status.Message = note
	if _, err := b.volumes.UpdateStatus(ctx, next); err != nil {
		return fmt.Errorf("writing the phase of the volume: %w", err)
	}
	b.recorder.Record(volume, events.Planned{Warning: true, Reason: why, Action: actionReclaim, Note: note})
	return nil
}

// deleterOf returns the plugin of this controller that deletes a volume. Without a plugin and an
// error, a driver deletes it.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, findDeletablePlugin.
func deleterOf(volume *corev1.PersistentVolume) (plugin string, err error) {
	switch maker := volume.Annotations[volumes.ProvisionedBy]; {
	case maker == volumes.HostPathPlugin:
		return maker, nil
	case maker == volumes.NFSPlugin:
		return "", fmt.Errorf("no deletable volume plugin matched")
	case volumes.IsInTree(maker):
		return "", fmt.Errorf("no volume plugin matched name: %s", maker)
	case maker != "", volume.Spec.CSI != nil:
		return "", nil
	}
	switch volumes.PluginOf(volume) {
	case volumes.HostPathPlugin:
		return volumes.HostPathPlugin, nil
	case volumes.NFSPlugin:
		return "", fmt.Errorf("error getting deleter volume plugin for volume %q: no deletable volume plugin matched", volume.Name)
	}
	return "", fmt.Errorf("error getting deleter volume plugin for volume %q: no volume plugin matched", volume.Name)
}

// delete deletes a volume, or leaves that to its driver.
func (b *binder) delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	plugin, err := deleterOf(volume)
	if err == nil && plugin == "" {
		driver := volume.Annotations[volumes.ProvisionedBy]
		if driver == "" {
			driver = volume.Spec.CSI.Driver
		}
		controller.Because(ctx, waitsForDeleter(volume, driver))
		return nil
	}
	if err == nil && !b.HostPath {
		err = fmt.Errorf("deleting volumes of the plugin %q needs --enable-hostpath-provisioner", plugin)
	}
	if err != nil {
		controller.Because(ctx, reason(codeCannotDelete, "the volume cannot be deleted: {why}", "an administrator deletes the volume, or changes its reclaim policy", "why", err))
		b.metrics.fails(volume)
		return b.fail(ctx, volume, reasonFailedDelete, err.Error())
	}
	volume, err = b.stillReleased(ctx, volume)
	if err != nil || volume == nil {
		return err
	}
	if err := removeHostPath(volume); err != nil {
		b.metrics.fails(volume)
		return b.fail(ctx, volume, reasonFailedDelete, err.Error())
	}
	if slices.Contains(volume.Finalizers, volumes.InTreeFinalizer) {
		next := volume.DeepCopy()
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == volumes.InTreeFinalizer })
		if volume, err = b.volumes.Update(ctx, next); err != nil {
			return fmt.Errorf("removing the finalizer %s: %w", volumes.InTreeFinalizer, err)
		}
	}
	return wrap(b.volumes.Delete(ctx, object.KeyOf(volume), client.IfUID(volume.UID)), "deleting the volume")
}

// stillReleased reads a volume and its claim from the server before something is done that cannot
// be undone. It returns the volume, or nil if it is not to be reclaimed.
func (b *binder) stillReleased(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	now, err := b.volumes.Server().Get(ctx, object.KeyOf(volume))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the volume from the server: %w", err)
	case now.UID != volume.UID || now.Spec.ClaimRef == nil || now.Spec.ClaimRef.UID != volume.Spec.ClaimRef.UID:
		return nil, nil
	}
	claim, err := b.confirm(ctx, now)
	if err != nil || claim != nil && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == now.Name) {
		return nil, err
	}
	return now, nil
}

// usersOf returns the names of the Pods that still use a volume by its claim.
func (b *binder) usersOf(volume *corev1.PersistentVolume) ([]string, error) {
	pods, err := cache.Objects(b.users.Find(claimOf(volume).String()))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range pods {
		if !volumes.Stopped(pod) {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// inUse is the reason of a volume that Pods keep from being recycled.
func inUse(pods []string) controller.Reason {
	return reason(codeInUse, "the claim is gone, and {pods} still use the volume", "the Pods end", "pods", shortlist.Join(pods, mostNamed))
}
