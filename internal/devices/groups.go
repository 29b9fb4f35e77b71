// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupOf returns the name of the PodGroup that a Pod belongs to, or "".
func GroupOf(pod *corev1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

// ClaimsOfGroup returns the claims of a PodGroup in the order of its spec.
func ClaimsOfGroup(group *schedulingv1beta1.PodGroup) (claims []Claim) {
	for _, entry := range group.Spec.ResourceClaims {
		claim := Claim{Entry: entry.Name}
		switch {
		case entry.ResourceClaimName != nil:
			claim.Name = *entry.ResourceClaimName
		case entry.ResourceClaimTemplateName != nil:
			claim.Template, claim.Generated = *entry.ResourceClaimTemplateName, true
			at := slices.IndexFunc(group.Status.ResourceClaimStatuses, func(s schedulingv1beta1.PodGroupResourceClaimStatus) bool { return s.Name == entry.Name })
			if at < 0 {
				break
			}
			if name := group.Status.ResourceClaimStatuses[at].ResourceClaimName; name != nil {
				claim.Name = *name
			} else {
				claim.Skipped = true
			}
		}
		claims = append(claims, claim)
	}
	return claims
}

// IsOfGroup reports whether a ResourceClaim with the right name is the one that a PodGroup means.
func (c Claim) IsOfGroup(claim *resourcev1.ResourceClaim, group *schedulingv1beta1.PodGroup) bool {
	return claim.Namespace == group.Namespace && (!c.Generated || metav1.IsControlledBy(claim, group))
}

// Shares reports whether the Pods of a PodGroup share the claim of an entry of a Pod: the PodGroup
// has an entry with the same name and the same source.
// Source: k8s.io/dynamic-resource-allocation/resourceclaim, BindTo.
func Shares(group *schedulingv1beta1.PodGroup, pod *corev1.Pod, entry string) bool {
	at := slices.IndexFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == entry })
	if group == nil || at < 0 {
		return false
	}
	of := pod.Spec.ResourceClaims[at]
	return slices.ContainsFunc(group.Spec.ResourceClaims, func(c schedulingv1beta1.PodGroupResourceClaim) bool {
		return c.Name == entry && same(c.ResourceClaimName, of.ResourceClaimName) && same(c.ResourceClaimTemplateName, of.ResourceClaimTemplateName)
	})
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// IsGroup reports whether a consumer of a claim is a PodGroup.
func IsGroup(consumer resourcev1.ResourceClaimConsumerReference) bool {
	return consumer.APIGroup == schedulingv1beta1.GroupName && consumer.Resource == "podgroups"
}

// madeForGroup reports whether a claim was made for a PodGroup. Of its API any version will do.
func madeForGroup(claim *resourcev1.ResourceClaim, group string) bool {
	ref := metav1.GetControllerOfNoCopy(claim)
	return group != "" && ref != nil && ref.Kind == "PodGroup" && ref.Name == group && strings.HasPrefix(ref.APIVersion, schedulingv1beta1.GroupName+"/")
}
