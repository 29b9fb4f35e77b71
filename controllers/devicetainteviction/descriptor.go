// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/devicetainteviction/config/v1alpha1.
func Defaults() Options { return Options{Workers: 8} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: Name,
		Summary: "deletes Pods whose devices have a NoExecute taint that they do not tolerate",
		ActsOn: []object.Resource{
			{Group: resourcev1.GroupName, Version: "v1", Plural: "devicetaintrules", Kind: "DeviceTaintRule"},
		},
		Rights:   Rights(),
		Defaults: Defaults(),
		Requires: []controllers.RequiredGate{{Name: "DynamicResourceAllocation", On: true}, {Name: "DRADeviceTaints", On: true}},
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-device-taint-eviction-syncs", &o.Workers,
					"how many Pods, and how many DeviceTaintRules, device-taint-eviction-controller works on at a time").AtLeast(1),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "DRADeviceTaintRules", Set: func(on bool) { o.NoRules = !on }},
				{Name: "DRAWorkloadResourceClaims", Set: func(on bool) { o.SharedClaims = on }},
			}
		},
	}, New)
}
