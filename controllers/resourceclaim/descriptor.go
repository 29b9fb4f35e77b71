// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim/config/v1alpha1.
func Defaults() Options { return Options{Workers: 50} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "resource-claim-controller", Account: "resource-claim-controller",
		Summary: "makes the ResourceClaims of Pods, and frees devices that no Pod uses any more",
		ActsOn: []object.Resource{
			{Group: resourcev1.GroupName, Version: "v1", Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true},
			{Group: resourcev1.GroupName, Version: "v1", Plural: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Namespaced: true},
		},
		Rights:   Rights(),
		Defaults: Defaults(),
		Requires: []controllers.RequiredGate{{Name: "DynamicResourceAllocation", On: true}},
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-resourceclaim-syncs", &o.Workers,
					"how many Pods, and how many ResourceClaims, resourceclaim-controller works on at a time").AtLeast(1),
			}
		},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "DRAAdminAccess", Set: func(on bool) { o.NoAdminAccess = !on }},
				{Name: "GenericWorkload", Set: func(on bool) { o.PodGroups = on }},
				{Name: "DRAWorkloadResourceClaims", Set: func(on bool) { o.SharedClaims = on }},
				{Name: "DRAPrioritizedList", Set: func(on bool) { o.NoPrioritizedList = !on }},
			}
		},
	}, New)
}
