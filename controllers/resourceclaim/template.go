// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/setpoint-io/setpoint/object"
)

// A name of a claim is a prefix of at most 57 characters, and five that are drawn.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim, handleClaim, and
// k8s.io/apiserver/pkg/storage/names.
const (
	prefixMost   = 57
	suffixLength = 5
)

// prefixFor returns what the name of a claim begins with. Of names that are too long, both the
// owner's and the entry's are cut in proportion to their lengths, so that something of each is left.
// A name that is cut after a dot loses the dot: the API server refuses "web.-gpu", and upstream then
// makes no claim.
func prefixFor(name, entry string) string {
	prefix := name + "-" + entry + "-"
	if len(prefix) <= prefixMost {
		return prefix
	}
	return strings.TrimRight(name[:len(name)*prefixMost/len(prefix)], ".") + "-" + entry[:len(entry)*prefixMost/len(prefix)]
}

// owner is for whom claims are made: a Pod or a PodGroup.
type owner struct {
	object.Object
	apiVersion, kind string
}

func ofPod(pod *corev1.Pod) owner { return owner{pod, "v1", "Pod"} }

func ofPodGroup(group *schedulingv1beta1.PodGroup) owner {
	return owner{group, schedulingv1beta1.SchemeGroupVersion.String(), "PodGroup"}
}

// claimFor returns the claim of an entry of a Pod or PodGroup. The name is drawn here and not by the server:
// a create whose response was lost can then be read from the server.
func claimFor(of owner, entry string, template *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaim {
	annotations := maps.Clone(template.Spec.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[resourcev1.PodResourceClaimAnnotation] = entry
	prefix := prefixFor(of.GetName(), entry)
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.GetNamespace(), GenerateName: prefix, Name: prefix + rand.String(suffixLength),
			Labels: template.Spec.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: of.apiVersion, Kind: of.kind, Name: of.GetName(), UID: of.GetUID(), Controller: new(true)}},
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
}

// refuses returns why no claim is made from a template, in upstream's words, or "".
func (o Options) refuses(template *resourcev1.ResourceClaimTemplate) string {
	for _, request := range template.Spec.Spec.Devices.Requests {
		if o.NoAdminAccess && request.Exactly != nil && request.Exactly.AdminAccess != nil && *request.Exactly.AdminAccess {
			return "admin access is requested, but the feature is disabled"
		}
	}
	for _, request := range template.Spec.Spec.Devices.Requests {
		if o.NoPrioritizedList && len(request.FirstAvailable) > 0 {
			return "template includes a prioritized list of subrequests, but the feature is disabled"
		}
	}
	return ""
}
