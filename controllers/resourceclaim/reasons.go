// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/shortlist"
	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the reasons why a Pod has no claim, or no devices, and why a claim stays.
const (
	codeTemplateMissing = "TemplateMissing"
	codeTemplateRefused = "TemplateRefused"
	codeClaimMissing    = "ClaimMissing"
	codeNotAllocated    = "ClaimNotAllocated"
	codeReservedByAll   = "ClaimFullyReserved"
	codeNotSupported    = "ClaimSourceUnknown"
	codeOfPodGroup      = "PodGroupClaims"
	codeGroupMissing    = "PodGroupMissing"
	codeInUse           = "ClaimInUse"
)

// mostNamed bounds the Pods and classes that a reason names.
const mostNamed = 5

func templateMissing(namespace, template string) controller.Reason {
	return controller.Reason{
		Code: codeTemplateMissing, Text: "the ResourceClaimTemplate {template} does not exist", Params: controller.With("template", template),
		Until: ofGroup("ResourceClaimTemplate", namespace, template),
	}
}

func templateRefused(template, why string) controller.Reason {
	return controller.Reason{
		Code: codeTemplateRefused, Text: "no claim is made from the ResourceClaimTemplate {template}: {cause}",
		Params: controller.With("template", template, "cause", why), Ends: "the feature is enabled, or the template is replaced",
	}
}

func claimMissing(namespace, claim string) controller.Reason {
	return controller.Reason{
		Code: codeClaimMissing, Text: "the ResourceClaim {claim} does not exist", Params: controller.With("claim", claim),
		Until: ofGroup("ResourceClaim", namespace, claim),
	}
}

// notAllocated says what the scheduler says, if it has said why it does not bind the Pod.
func notAllocated(pod *corev1.Pod, claim *resourcev1.ResourceClaim) controller.Reason {
	reason := controller.Reason{
		Code: codeNotAllocated, Text: "the scheduler has not allocated the ResourceClaim {claim}, which requests devices of {classes}",
		Params: controller.With("claim", claim.Name, "classes", shortlist.Join(classesOf(claim), mostNamed)),
		Until:  ofGroup("ResourceClaim", claim.Namespace, claim.Name),
	}
	if c := podstate.Condition(pod, corev1.PodScheduled); c != nil && c.Message != "" {
		reason.Text += ": {message}"
		message := strings.TrimSuffix(c.Message, ".") // words may follow it
		reason.Params = append(reason.Params, controller.With("message", message)...)
	}
	return reason
}

// classesOf returns the device classes that a claim requests, each once.
func classesOf(claim *resourcev1.ResourceClaim) []string {
	var classes []string
	add := func(class string) {
		if class = "DeviceClass " + class; !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
	}
	for _, request := range claim.Spec.Devices.Requests {
		if request.Exactly != nil {
			add(request.Exactly.DeviceClassName)
		}
		for _, sub := range request.FirstAvailable {
			add(sub.DeviceClassName)
		}
	}
	slices.SortFunc(classes, strings.Compare)
	return classes
}

func reservedByAll(claim *resourcev1.ResourceClaim) controller.Reason {
	return controller.Reason{
		Code: codeReservedByAll, Text: "the ResourceClaim {claim} is reserved for {count} {count?Pod|Pods}, and cannot be for more",
		Params: controller.With("claim", claim.Name, "count", len(claim.Status.ReservedFor)), Ends: "one of these Pods ends",
		Until: ofGroup("ResourceClaim", claim.Namespace, claim.Name),
	}
}

func notSupported(entry string) controller.Reason {
	return controller.Reason{
		Code: codeNotSupported, Text: "the entry {entry} of spec.resourceClaims names neither a claim nor a template",
		Params: controller.With("entry", entry), Ends: "a version of this controller that knows its source runs",
	}
}

func groupsOff(group string) controller.Reason {
	return controller.Reason{
		Code: codeOfPodGroup, Text: "the Pod belongs to the PodGroup {group}, and the feature gate GenericWorkload is off",
		Params: controller.With("group", group), Ends: "the gate is on",
	}
}

func groupMissing(namespace, group string) controller.Reason {
	return controller.Reason{
		Code: codeGroupMissing, Text: "the PodGroup {group} of the Pod does not exist, so it is not known whether its Pods share claims",
		Params: controller.With("group", group),
		Until:  runs.Object{Group: schedulingv1beta1.GroupName, Kind: "PodGroup", Namespace: namespace, Name: group},
	}
}

func sharingOff(entry, group string) controller.Reason {
	return controller.Reason{
		Code: codeOfPodGroup, Text: "the Pods of the PodGroup {group} share the claim of the entry {entry}, and the feature gate DRAWorkloadResourceClaims is off",
		Params: controller.With("group", group, "entry", entry), Ends: "the gate is on",
	}
}

func sharedMissing(namespace, entry, group string) controller.Reason {
	return controller.Reason{
		Code: codeClaimMissing, Text: "the PodGroup {group} has no claim yet for the entry {entry}, which its Pods share",
		Params: controller.With("group", group, "entry", entry),
		Until:  runs.Object{Group: schedulingv1beta1.GroupName, Kind: "PodGroup", Namespace: namespace, Name: group},
	}
}

func inUse(consumers []resourcev1.ResourceClaimConsumerReference) controller.Reason {
	var names []string
	for _, c := range consumers {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return controller.Reason{
		Code: codeInUse, Text: "the claim is being deleted, and is reserved for {consumers}",
		Params: controller.With("consumers", shortlist.Join(names, mostNamed)), Ends: "these Pods end",
	}
}

func ofGroup(kind, namespace, name string) runs.Object {
	return runs.Object{Group: resourcev1.GroupName, Kind: kind, Namespace: namespace, Name: name}
}
