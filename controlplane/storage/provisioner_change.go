// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// change brings a bound volume to the size and the attributes that its claim wants.
func (s *provisioner) change(ctx context.Context, claim *corev1.PersistentVolumeClaim) (controller.Result, error) {
	if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	volume, err := s.volumes.Get(object.Key{Name: claim.Spec.VolumeName})
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil || volume.Spec.CSI == nil || volume.Spec.CSI.Driver != Driver {
		return controller.Result{}, err
	}
	wants, has := claim.Spec.Resources.Requests.Storage(), claim.Status.Capacity.Storage()
	if wants.Cmp(*has) > 0 {
		return s.resize(ctx, claim, volume)
	}
	s.attempts.forget(object.KeyOf(claim), Resize)
	if modifies(claim) {
		return s.modify(ctx, claim, volume)
	}
	s.attempts.forget(object.KeyOf(claim), Modify)
	return controller.Result{}, nil
}

// resize makes a volume larger, and its file system with it.
func (s *provisioner) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (controller.Result, error) {
	wants := claim.Spec.Resources.Requests.Storage().DeepCopy()
	k, _ := knobsOf(Resize, claim.Annotations, volume.Annotations)
	v := s.attempts.judge(object.KeyOf(claim), claim.UID, Resize, wants.String(), k, s.now())
	if v.first {
		s.recorder.Normal(claim, reasonResizing, actionResize, "External resizer is resizing volume %s", volume.Name)
	}
	switch {
	case v.err != nil:
		s.recorder.Warning(claim, reasonNotResized, actionResize, "resize volume %q by resizer %q failed: %v", volume.Name, Driver, v.err)
		return controller.Result{After: v.wait}, nil //nolint:nilerr // an Event has the failure that the knobs ask for, which is none of the loop
	case !v.done:
		return controller.Result{After: v.wait}, nil
	}
	if wants.Cmp(*volume.Spec.Capacity.Storage()) > 0 {
		next := volume.DeepCopy()
		next.Spec.Capacity[corev1.ResourceStorage] = wants
		if _, err := s.volumes.Update(ctx, next); err != nil {
			return controller.Result{}, fmt.Errorf("writing the capacity of volume %s: %w", volume.Name, err)
		}
	}
	next := claim.DeepCopy()
	if next.Status.Capacity == nil {
		next.Status.Capacity = corev1.ResourceList{}
	}
	next.Status.Capacity[corev1.ResourceStorage] = wants
	if _, err := s.claims.UpdateStatus(ctx, next); err != nil {
		return controller.Result{}, fmt.Errorf("writing the capacity of the claim: %w", err)
	}
	s.recorder.Normal(claim, reasonResized, actionResize, "Resize volume succeeded")
	return controller.Result{}, nil
}

// modifies reports whether a claim wants another VolumeAttributesClass than its volume has.
func modifies(claim *corev1.PersistentVolumeClaim) bool {
	wants := volumes.AttributesOf(claim.Spec.VolumeAttributesClassName)
	return wants != "" && wants != volumes.AttributesOf(claim.Status.CurrentVolumeAttributesClassName)
}

// modify gives a volume another VolumeAttributesClass.
func (s *provisioner) modify(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (controller.Result, error) {
	wants := *claim.Spec.VolumeAttributesClassName
	status := func(phase corev1.PersistentVolumeClaimModifyVolumeStatus) error {
		if now := claim.Status.ModifyVolumeStatus; now != nil && now.Status == phase && now.TargetVolumeAttributesClassName == wants {
			return nil
		}
		next := claim.DeepCopy()
		next.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: wants, Status: phase}
		answer, err := s.claims.UpdateStatus(ctx, next)
		if err != nil {
			return fmt.Errorf("writing the status of the modification: %w", err)
		}
		claim = answer
		return nil
	}
	class, err := s.attributes.Get(object.Key{Name: wants})
	if apierrors.IsNotFound(err) || err == nil && class.DriverName != Driver {
		s.recorder.Warning(claim, reasonNotModified, actionModify, "%s", missing(wants, class))
		return controller.Result{}, status(corev1.PersistentVolumeClaimModifyVolumePending)
	}
	if err != nil {
		return controller.Result{}, err
	}
	k, _ := knobsOf(Modify, claim.Annotations, volume.Annotations)
	v := s.attempts.judge(object.KeyOf(claim), claim.UID, Modify, wants, k, s.now())
	if v.first {
		s.recorder.Normal(claim, reasonModifying, actionModify, "external resizer is modifying volume %s with vac %s", claim.Name, wants)
	}
	if err := status(corev1.PersistentVolumeClaimModifyVolumeInProgress); err != nil {
		return controller.Result{}, err
	}
	switch {
	case v.err != nil:
		s.recorder.Warning(claim, reasonNotModified, actionModify, "%v", v.err)
		return controller.Result{After: v.wait}, nil //nolint:nilerr // an Event has the failure that the knobs ask for, which is none of the loop
	case !v.done:
		return controller.Result{After: v.wait}, nil
	}
	if volumes.AttributesOf(volume.Spec.VolumeAttributesClassName) != wants {
		next := volume.DeepCopy()
		next.Spec.VolumeAttributesClassName = &wants
		if _, err := s.volumes.Update(ctx, next); err != nil {
			return controller.Result{}, fmt.Errorf("writing the attributes of volume %s: %w", volume.Name, err)
		}
	}
	next := claim.DeepCopy()
	next.Status.CurrentVolumeAttributesClassName, next.Status.ModifyVolumeStatus = &wants, nil
	if _, err := s.claims.UpdateStatus(ctx, next); err != nil {
		return controller.Result{}, fmt.Errorf("writing the attributes of the claim: %w", err)
	}
	s.recorder.Normal(claim, reasonModified, actionModify, "external resizer modified volume %s with vac %s successfully", claim.Name, wants)
	return controller.Result{}, nil
}

// missing says why a VolumeAttributesClass cannot be used.
func missing(name string, class *storagev1.VolumeAttributesClass) string {
	if class == nil {
		return fmt.Sprintf("VAC %s does not exist", name)
	}
	return fmt.Sprintf("VAC %s is for driver %s, and the volume is of driver %s", name, class.DriverName, Driver)
}
