// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/devices"
)

// podView is what a decision about a Pod depends on.
type podView struct {
	pod *corev1.Pod
	// named are the claims whose names the Pod states, as far as they exist.
	named map[string]*resourcev1.ResourceClaim
	// unseen says that the server has one of them, and that the cache does not show it.
	unseen bool
	// owned are the claims that the Pod controls.
	owned []*resourcev1.ResourceClaim
	// templates are those that the Pod states, as far as they exist.
	templates map[string]*resourcev1.ResourceClaimTemplate
	options   Options
	// group is the PodGroup of the Pod, if it exists, and shared are the claims that it controls.
	group  *schedulingv1beta1.PodGroup
	shared []*resourcev1.ResourceClaim
}

// podPlan is what is to be done for a Pod.
type podPlan struct {
	create []newClaim
	// adopted are the names of claims that exist and that the status of the Pod lacks, by entry.
	adopted map[string]string
	// reserve are allocated claims that the Pod, or its PodGroup, is to be added to.
	reserve []reservation
	// refused are the entries for which no claim can be made.
	refused []refusal
	reasons []controller.Reason
}

// reservation is a claim with the consumer that is to be added to it.
type reservation struct {
	claim *resourcev1.ResourceClaim
	to    resourcev1.ResourceClaimConsumerReference
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
	case devices.GroupOf(v.pod) == "":
	case !v.options.PodGroups:
		p.because(groupsOff(devices.GroupOf(v.pod)))
		return p
	case v.group == nil:
		p.because(groupMissing(v.pod.Namespace, devices.GroupOf(v.pod)))
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
	if claim := v.named[c.Name]; c.Name != "" && claim != nil && c.Is(claim, v.pod, v.options.SharedClaims) {
		p.present(v, c, claim)
		return
	}
	if c.Template == "" {
		p.because(claimMissing(v.pod.Namespace, c.Name))
		return
	}
	if !devices.Shares(v.group, v.pod, c.Entry) {
		if claim := p.generate(v.options, ofPod(v.pod), c, v.owned, v.templates[c.Template]); claim != nil {
			p.present(v, c, claim)
		}
		return
	}
	claim := orphan(v.shared, c.Entry)
	switch {
	case !v.options.SharedClaims:
		p.refuse(c.Entry, fmt.Sprintf("claim %s is a PodGroup claim but the DRAWorkloadResourceClaims feature is disabled", c.Entry))
		p.because(sharingOff(c.Entry, v.group.Name))
	case claim == nil:
		p.because(sharedMissing(v.pod.Namespace, c.Entry, v.group.Name))
	default:
		p.adopted[c.Entry] = claim.Name
		p.present(v, c, claim)
	}
}

// generate decides about an entry whose claim is made from a template. It returns the claim that
// was made before, and whose name did not reach the status, or nil.
func (p *podPlan) generate(o Options, of owner, c devices.Claim, owned []*resourcev1.ResourceClaim, template *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaim {
	if claim := orphan(owned, c.Entry); claim != nil {
		p.adopted[c.Entry] = claim.Name
		return claim
	}
	if template == nil {
		p.refuse(c.Entry, fmt.Sprintf("resource claim template %q: resourceclaimtemplate.resource.k8s.io %q not found", c.Template, c.Template))
		p.because(templateMissing(of.GetNamespace(), c.Template))
		return nil
	}
	if why := o.refuses(template); why != "" {
		p.refuse(c.Entry, why)
		p.because(templateRefused(template.Name, why))
		return nil
	}
	p.create = append(p.create, newClaim{c.Entry, claimFor(of, c.Entry, template)})
	return nil
}

// present decides about a claim that exists.
func (p *podPlan) present(v podView, c devices.Claim, claim *resourcev1.ResourceClaim) {
	shared := devices.Shares(v.group, v.pod, c.Entry)
	allocated := claim.Status.Allocation != nil
	switch {
	case v.pod.Spec.NodeName == "":
		if !allocated {
			p.because(notAllocated(v.pod, claim))
		}
	case !allocated || devices.IsReservedFor(claim, v.pod, v.options.SharedClaims):
	case shared && !v.options.SharedClaims:
		p.because(sharingOff(c.Entry, v.group.Name))
	case len(claim.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize:
		p.because(reservedByAll(claim))
	case shared:
		p.reserve = append(p.reserve, reservation{claim, resourcev1.ResourceClaimConsumerReference{
			APIGroup: schedulingv1beta1.GroupName, Resource: "podgroups", Name: v.group.Name, UID: v.group.UID,
		}})
	default:
		p.reserve = append(p.reserve, reservation{claim, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: v.pod.Name, UID: v.pod.UID}})
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
