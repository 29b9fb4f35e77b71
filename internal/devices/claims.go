// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// Claim is a ResourceClaim that a Pod uses, as the Pod states it.
type Claim struct {
	// Entry is the name within the Pod. It is empty for the claim that the scheduler makes for
	// extended resources.
	Entry string
	// Name is the name of the ResourceClaim. It is empty while there is none.
	Name string
	// Template is the ResourceClaimTemplate that the claim is made from. It is empty for a claim
	// that a user has made.
	Template string
	// Generated is set if the claim was made for this Pod alone. Another Pod's claim of the same
	// name is then not meant: see [Claim.Is].
	Generated bool
	// Skipped is set if the status of the Pod says that it needs no claim for this entry.
	Skipped bool
}

// Known reports whether the entry has a source that this package knows. A later version of
// Kubernetes may add others.
func (c Claim) Known() bool { return c.Name != "" || c.Template != "" || c.Skipped }

// Is reports whether a ResourceClaim with the right name is the one that a Pod means. With groups,
// it may have been made for the PodGroup of the Pod.
func (c Claim) Is(claim *resourcev1.ResourceClaim, pod *corev1.Pod, groups bool) bool {
	return claim.Namespace == pod.Namespace && (!c.Generated || metav1.IsControlledBy(claim, pod) || groups && madeForGroup(claim, GroupOf(pod)))
}

// ClaimsOf returns the claims of a Pod in the order of its spec, and after them the one for
// extended resources.
func ClaimsOf(pod *corev1.Pod) []Claim {
	claims := make([]Claim, 0, len(pod.Spec.ResourceClaims)+1)
	for _, entry := range pod.Spec.ResourceClaims {
		claims = append(claims, claimOf(pod, entry))
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil && s.ResourceClaimName != "" {
		claims = append(claims, Claim{Name: s.ResourceClaimName, Generated: true})
	}
	return claims
}

func claimOf(pod *corev1.Pod, entry corev1.PodResourceClaim) Claim {
	claim := Claim{Entry: entry.Name}
	switch {
	case entry.ResourceClaimName != nil:
		claim.Name = *entry.ResourceClaimName
	case entry.ResourceClaimTemplateName != nil:
		claim.Template, claim.Generated = *entry.ResourceClaimTemplateName, true
		at := slices.IndexFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == entry.Name })
		if at < 0 {
			break
		}
		if name := pod.Status.ResourceClaimStatuses[at].ResourceClaimName; name != nil {
			claim.Name = *name
		} else {
			claim.Skipped = true
		}
	}
	return claim
}

// HasClaims reports whether a Pod uses any claim.
func HasClaims(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// Done reports whether it is certain that no container of a Pod runs, and that none will.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim, isPodDone.
func Done(pod *corev1.Pod) bool {
	return podstate.Ended(pod) || pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

// IsPod reports whether a consumer of a claim is a Pod. Other consumers are of kinds that this
// package does not know.
func IsPod(consumer resourcev1.ResourceClaimConsumerReference) bool {
	return consumer.APIGroup == "" && consumer.Resource == "pods"
}

// IsReservedFor reports whether a claim is reserved for a Pod, or with groups for its PodGroup. A
// Pod does not know the UID of its PodGroup.
func IsReservedFor(claim *resourcev1.ResourceClaim, pod *corev1.Pod, groups bool) bool {
	group := GroupOf(pod)
	return slices.ContainsFunc(claim.Status.ReservedFor, func(c resourcev1.ResourceClaimConsumerReference) bool {
		return c.UID == pod.UID || groups && group != "" && IsGroup(c) && c.Name == group
	})
}
