// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

// Annotations of claims and volumes.
// Source: k8s.io/component-helpers/storage/volume.
const (
	// BindCompleted is on a claim that has been bound once. The binder never looks for another
	// volume for it. The value does not matter.
	BindCompleted = "pv.kubernetes.io/bind-completed"

	// BoundByController is on a claim or a volume whose reference to the other one was written
	// by the binder. Without it a user has written the reference. The value does not matter.
	BoundByController = "pv.kubernetes.io/bound-by-controller"

	// ProvisionedBy is on a volume that was made for a claim, and names the plugin or driver
	// that made it.
	ProvisionedBy = "pv.kubernetes.io/provisioned-by"

	// MigratedTo is on a claim or a volume of a plugin that a CSI driver has taken over, and
	// names the driver.
	MigratedTo = "pv.kubernetes.io/migrated-to"

	// SelectedNode is on a claim whose volume is to be made for the Node of its first Pod. The
	// scheduler writes it.
	SelectedNode = "volume.kubernetes.io/selected-node"

	// StorageProvisioner is on a claim that waits for the provisioner that it names.
	StorageProvisioner = "volume.kubernetes.io/storage-provisioner"

	// BetaStorageProvisioner is the earlier name of [StorageProvisioner]. Both are written.
	BetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"

	// StorageResizer is on a claim whose volume the driver that it names resizes.
	// Source: k8s.io/kubernetes/pkg/volume/util, VolumeResizerKey.
	StorageResizer = "volume.kubernetes.io/storage-resizer"

	// PreResizeCapacity is on a volume that is larger than its file system, and has the size of
	// the file system.
	// Source: k8s.io/kubernetes/pkg/volume/util, AnnPreResizeCapacity.
	PreResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
)

// Finalizers of volumes.
// Source: k8s.io/component-helpers/storage/volume.
const (
	// ExternalFinalizer keeps a volume until its driver has deleted what it stands for.
	ExternalFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"

	// InTreeFinalizer keeps a volume until a plugin of the controller manager has deleted what
	// it stands for.
	InTreeFinalizer = "kubernetes.io/pv-controller"
)

// NoProvisioner is the provisioner of a class whose volumes are made by hand.
// Source: k8s.io/component-helpers/storage/volume, NotSupportedProvisioner.
const NoProvisioner = "kubernetes.io/no-provisioner"

// NameFor returns the name of the volume that is made for a claim. It is the same for each
// attempt, so that no claim gets two.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, getProvisionedVolumeNameForClaim.
func NameFor(claimUID string) string { return "pvc-" + claimUID }
