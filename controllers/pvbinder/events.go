// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

// Reasons of Events.
// Source: k8s.io/kubernetes/pkg/controller/volume/events, and persistentvolume.
const (
	reasonFailedBinding         = "FailedBinding"
	reasonVolumeMismatch        = "VolumeMismatch"
	reasonClaimLost             = "ClaimLost"
	reasonClaimMisbound         = "ClaimMisbound"
	reasonFirstConsumer         = "WaitForFirstConsumer"
	reasonPodScheduled          = "WaitForPodScheduled"
	reasonExternalProvisioning  = "ExternalProvisioning"
	reasonProvisioningFailed    = "ProvisioningFailed"
	reasonProvisioningSucceeded = "ProvisioningSucceeded"
	reasonCleanupFailed         = "ProvisioningCleanupFailed"
	reasonUnknownPolicy         = "VolumeUnknownReclaimPolicy"
	reasonFailedDelete          = "VolumeFailedDelete"
	reasonFailedRecycle         = "VolumeFailedRecycle"
	reasonRecycled              = "VolumeRecycled"
	reasonRecyclerPod           = "RecyclerPod"
)

// Actions of Events.
const (
	actionBind      = "Bind"
	actionProvision = "Provision"
	actionReclaim   = "Reclaim"
)
