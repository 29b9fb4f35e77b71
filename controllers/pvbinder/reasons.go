// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import "github.com/setpoint-io/setpoint/controller"

// Codes of the reasons why a claim has no volume.
const (
	codeFirstConsumer = "WaitsForFirstConsumer"
	codePodScheduled  = "WaitsForPodToBeScheduled"
	codeNoVolume      = "NoVolumeFits"
	codeProvisioner   = "WaitsForProvisioner"
	codeNoClass       = "StorageClassDoesNotExist"
	codeNoPlugin      = "NoPluginProvisions"
	codeDisabled      = "ProvisioningDisabled"
	codeNotFound      = "VolumeDoesNotExist"
	codeTaken         = "VolumeBoundToOtherClaim"
	codeMismatch      = "VolumeDoesNotFit"
	codeLost          = "VolumeLost"
	codeClaimDeleted  = "ClaimIsBeingDeleted"
)

// Codes of the reasons why a volume stays as it is.
const (
	codeReserved       = "ReservedForClaim"
	codeRetained       = "RetainedAfterClaim"
	codeDeleter        = "WaitsForDeleter"
	codeCannotDelete   = "VolumeCannotBeDeleted"
	codeInUse          = "VolumeInUse"
	codeRecycler       = "RecyclerPodRuns"
	codeRecyclerFailed = "RecyclerPodFailed"
	codeNoRecycler     = "VolumeCannotBeRecycled"
)

// reason makes a reason. params are names and values in turn.
func reason(code, text, ends string, params ...any) controller.Reason {
	return controller.Reason{Code: code, Text: text, Ends: ends, Params: controller.With(params...)}
}
