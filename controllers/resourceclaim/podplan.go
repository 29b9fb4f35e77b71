// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/devices"
)

// podView is what a decision about a Pod depends on.
type podView struct {
	pod *corev1.Pod
	// named are the claims whose names the Pod states, as far as they exist.
	named map[string]*resourcev1.ResourceClaim
	// owned are the claims that the Pod controls.
	owned []*resourcev1.ResourceClaim
	// templates are those that the Pod states, as far as they exist.
	templates map[string]*resourcev1.ResourceClaimTemplate
	options   Options
}

// podPlan is what is to be done for a Pod.
type podPlan struct {
	create []newClaim
	// adopted are the names of claims that exist and that the status of the Pod lacks, by entry.
	adopted map[string]string
	// reserve are allocated claims that the Pod is to be added to.
	reserve []*resourcev1.ResourceClaim
	// refused are the entries for which no claim can be made.
	refused []refusal
	reasons []controller.Reason
}

// newClaim is a claim without a name, for an entry of a Pod.
type newClaim struct {
	entry string
	claim *resourcev1.ResourceClaim
}

// refusal is why no claim is made for an entry, in the words of an Event.
type refusal struct{ entry, why string }

// decidePod returns what is to be done for a Pod with claims. It changes nothing.
func decidePod(v podView) podPlan {
	p := podPlan{adopted: map[string]string{}}
	switch {
	case v.pod.DeletionTimestamp != nil, devices.Done(v.pod):
		return p
	case v.pod.Spec.SchedulingGroup != nil && v.pod.Spec.SchedulingGroup.PodGroupName != nil:
		p.because(ofPodGroup(*v.pod.Spec.SchedulingGroup.PodGroupName))
		return p
	}
	for _, c := range devices.ClaimsOf(v.pod) {
		if c.Entry != "" { // the scheduler makes and reserves claims for extended resources
			p.entry(v, c)
		}
	}
	return p
}

// entry decides about one entry of spec.resourceClaims.
func (p *podPlan) entry(v podView, c devices.Claim) {
	switch {
	case !c.Known():
		p.refuse(c.Entry, fmt.Sprintf("checking for claim before creating it: pod %q, spec.resourceClaim %q: none of the supported fields are set", v.pod.Name, c.Entry))
		p.because(notSupported(c.Entry))
		return
	case c.Skipped:
		return
	}
	if claim := v.named[c.Name]; c.Name != "" && claim != nil && c.Is(claim, v.pod) {
		p.present(v, claim)
		return
	}
	if c.Template == "" {
		p.because(claimMissing(v.pod.Namespace, c.Name))
		return
	}
	if claim := orphan(v.owned, c.Entry); claim != nil {
		p.adopted[c.Entry] = claim.Name
		p.present(v, claim)
		return
	}
	template := v.templates[c.Template]
	if template == nil {
		p.refuse(c.Entry, fmt.Sprintf("resource claim template %q: resourceclaimtemplate.resource.k8s.io %q not found", c.Template, c.Template))
		p.because(templateMissing(v.pod.Namespace, c.Template))
		return
	}
	if why := v.options.refuses(template); why != "" {
		p.refuse(c.Entry, why)
		p.because(templateRefused(template.Name, why))
		return
	}
	p.create = append(p.create, newClaim{c.Entry, claimFor(v.pod, c.Entry, template)})
}

// present decides about a claim that exists.
func (p *podPlan) present(v podView, claim *resourcev1.ResourceClaim) {
	allocated := claim.Status.Allocation != nil
	switch {
	case v.pod.Spec.NodeName == "":
		if !allocated {
			p.because(notAllocated(v.pod, claim))
		}
	case !allocated || devices.IsReservedFor(claim, v.pod):
	case len(claim.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize:
		p.because(reservedByAll(claim))
	default:
		p.reserve = append(p.reserve, claim)
	}
}

// orphan returns the claim that was made for an entry and whose name did not reach the status of
// the Pod. There should be one at most; of several it is the oldest.
func orphan(owned []*resourcev1.ResourceClaim, entry string) *resourcev1.ResourceClaim {
	var found []*resourcev1.ResourceClaim
	for _, claim := range owned {
		if name, made := claim.Annotations[resourcev1.PodResourceClaimAnnotation]; made && name == entry {
			found = append(found, claim)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *resourcev1.ResourceClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

func (p *podPlan) refuse(entry, why string) { p.refused = append(p.refused, refusal{entry, why}) }

func (p *podPlan) because(reason controller.Reason) { p.reasons = append(p.reasons, reason) }

// statuses returns status.resourceClaimStatuses of a Pod with the claims that it got in this run.
// The entries of earlier runs stay: an apply removes what it does not name.
func statuses(pod *corev1.Pod, got map[string]string) []corev1.PodResourceClaimStatus {
	var all []corev1.PodResourceClaimStatus
	for _, s := range pod.Status.ResourceClaimStatuses {
		if _, again := got[s.Name]; !again {
			all = append(all, s)
		}
	}
	for entry, name := range got {
		all = append(all, corev1.PodResourceClaimStatus{Name: entry, ResourceClaimName: &name})
	}
	slices.SortFunc(all, func(a, b corev1.PodResourceClaimStatus) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
