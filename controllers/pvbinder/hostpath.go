// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// Directories that are volumes, for tests on a single Node.
// Source: k8s.io/kubernetes/pkg/volume/hostpath.
const (
	hostPathRoot = "/tmp/"
	hostPathBase = hostPathRoot + "hostpath_pv/"
)

// makeHostPath makes a directory and the volume for it. The directory has the name of the claim's
// UID, so that an attempt after a crash finds it.
func (b *binder) makeHostPath(ctx context.Context, v *claimView) error {
	claim, class := v.claim, v.class
	refuse := func(format string, args ...any) error {
		err := fmt.Errorf(format, args...)
		b.recorder.Warning(claim, reasonProvisioningFailed, actionProvision, "%v", err)
		return controller.Terminal(err)
	}
	switch {
	case claim.Spec.DataSource != nil:
		return refuse("plugin %q is not a CSI plugin. Only CSI plugin can provision a claim with a datasource", volumes.HostPathPlugin)
	case len(class.MountOptions) > 0:
		return refuse("Mount options are not supported by the provisioner but StorageClass %q has mount options %v", class.Name, class.MountOptions)
	case !b.HostPath:
		return refuse("Failed to create provisioner: provisioning in volume plugin %q is disabled", volumes.HostPathPlugin)
	case volumes.ModeOf(claim.Spec.VolumeMode) == corev1.PersistentVolumeBlock:
		return refuse("Failed to provision volume with StorageClass %q: %s does not support block volume provisioning", class.Name, volumes.HostPathPlugin)
	}
	claim, err := b.askProvisioner(ctx, claim, volumes.HostPathPlugin)
	if err != nil {
		return err
	}
	volume := hostPathVolume(claim, class.ReclaimPolicy)
	if _, err := b.volumes.Server().Get(ctx, object.KeyOf(volume)); !apierrors.IsNotFound(err) {
		return wrap(err, "reading volume "+volume.Name)
	}
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o750); err != nil {
		b.recorder.Warning(claim, reasonProvisioningFailed, actionProvision, "Failed to provision volume with StorageClass %q: %v", class.Name, err)
		return errors.Join(fmt.Errorf("making the directory of the volume: %w", err), b.reschedule(ctx, claim))
	}
	_, err = b.volumes.Create(ctx, volume)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.recorder.Warning(claim, reasonProvisioningFailed, actionProvision,
			"Error creating provisioned PV object for claim %s: %v. Deleting the volume.", object.KeyOf(claim), err)
		if failure := removeHostPath(volume); failure != nil {
			b.recorder.Warning(claim, reasonCleanupFailed, actionProvision,
				"Error cleaning provisioned volume for claim %s: %v. Please delete manually.", object.KeyOf(claim), failure)
		}
		return fmt.Errorf("creating volume %s: %w", volume.Name, err)
	}
	b.recorder.Normal(claim, reasonProvisioningSucceeded, actionProvision, "Successfully provisioned volume %s using %s", volume.Name, volumes.HostPathPlugin)
	return nil
}

// reschedule has the scheduler choose again, if it chose the Node for which no volume can be made. Drivers of the Container
// Storage Interface have a provisioner that does the same for them.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, rescheduleProvisioning.
func (b *binder) reschedule(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if _, chosen := claim.Annotations[volumes.SelectedNode]; !chosen {
		return nil
	}
	next := claim.DeepCopy()
	delete(next.Annotations, volumes.SelectedNode)
	_, err := b.claims.Update(ctx, next)
	return wrap(err, "removing the Node that the scheduler chose for the claim")
}

// hostPathVolume returns the volume of a claim.
func hostPathVolume(claim *corev1.PersistentVolumeClaim, policy *corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volumes.NameFor(string(claim.UID)),
			Annotations: map[string]string{
				"kubernetes.io/createdby": "hostpath-dynamic-provisioner",
				volumes.ProvisionedBy:     volumes.HostPathPlugin,
				volumes.BoundByController: "yes",
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			StorageClassName:              volumes.ClassOf(claim),
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: hostPathBase + string(claim.UID)}},
			ClaimRef:                      referenceTo(claim),
		},
	}
	if policy != nil {
		volume.Spec.PersistentVolumeReclaimPolicy = *policy
	}
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		volume.Finalizers = []string{volumes.InTreeFinalizer}
	}
	return volume
}

// removeHostPath removes the directory of a volume, which must lie below /tmp.
func removeHostPath(volume *corev1.PersistentVolume) error {
	if volume.Spec.HostPath == nil {
		return fmt.Errorf("volume %s is not a directory of a Node", volume.Name)
	}
	path := filepath.Clean(volume.Spec.HostPath.Path)
	if !strings.HasPrefix(path, hostPathRoot) {
		return fmt.Errorf("host_path deleter only supports /tmp/.+ but received provided %s", volume.Spec.HostPath.Path)
	}
	return os.RemoveAll(path)
}
