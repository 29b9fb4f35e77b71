// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package vacprotection

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
func Defaults() Options { return Options{} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name:    Name,
		Alias:   Name,
		Summary: "keeps VolumeAttributesClasses that volumes or claims name from being removed",
		ActsOn: []object.Resource{
			{Group: storagev1.GroupName, Version: "v1", Plural: "volumeattributesclasses", Kind: "VolumeAttributesClass"},
		},
		Rights:   Rights(),
		Defaults: Defaults(),
		Requires: []controllers.RequiredGate{{Name: "VolumeAttributesClass", On: true}},
	}, New)
}
