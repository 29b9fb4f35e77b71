// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/shortlist"
	"github.com/setpoint-io/setpoint/internal/volumes"
)

// mostNamed bounds the Pods that an Event or a reason names.
const mostNamed = 5

// claimView is what a claim is decided by.
type claimView struct {
	claim       *corev1.PersistentVolumeClaim
	named       *corev1.PersistentVolume // that the claim names, or nil if it does not exist
	behind      bool                     // the server has the named volume, and the cache has not
	reserved    *corev1.PersistentVolume // that refers to the claim and satisfies it, or nil
	unfit       *corev1.PersistentVolume // that was made for the claim and does not satisfy it, or nil
	class       *storagev1.StorageClass  // of the claim, or nil if it does not exist
	fallback    *storagev1.StorageClass  // the default class, or nil
	unscheduled []string                 // Pods without a Node that use the claim
	options     *Options
}

// waitsForConsumer reports whether the scheduler chooses the volume of the claim.
func (v *claimView) waitsForConsumer() bool {
	return v.class != nil && volumes.WaitsForConsumer(v.class)
}

// claimPlan is what is to be done for a claim. At most one of bind, match, classify, provision,
// pend and lose is set.
type claimPlan struct {
	bind      *corev1.PersistentVolume // bind the claim to this volume
	match     bool                     // bind the claim to the best free volume; without one, do otherwise
	classify  string                   // give the claim this class
	provision string                   // ask this provisioner for a volume
	inTree    bool                     // the provisioner is a plugin of this controller
	pend      bool                     // the claim is Pending
	lose      bool                     // the claim is Lost

	event  *events.Planned // about the wait
	always bool            // the event goes with a change of the phase, and is no reminder
	reason *controller.Reason
}

func (p *claimPlan) say(warning bool, reason, action, format string, args ...any) {
	p.event = &events.Planned{Warning: warning, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)}
}

func (p *claimPlan) because(code, text, ends string, params ...any) {
	p.reason = new(reason(code, text, ends, params...))
}

// decideClaim returns what is to be done for a claim.
//
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, syncUnboundClaim and
// syncBoundClaim.
func decideClaim(v *claimView) claimPlan {
	_, completed := v.claim.Annotations[volumes.BindCompleted]
	switch {
	case completed:
		return decideBound(v)
	case v.claim.Spec.VolumeName != "":
		return decideNamed(v)
	case v.reserved != nil && (v.claim.DeletionTimestamp == nil || v.reserved.Spec.ClaimRef.UID == v.claim.UID):
		return claimPlan{bind: v.reserved}
	case v.claim.DeletionTimestamp != nil:
		p := claimPlan{}
		p.because(codeClaimDeleted, "the claim is being deleted and has no volume, so that none is looked for", "")
		return p
	case v.waitsForConsumer():
		return decideUnmatched(v) // the scheduler chooses among the free volumes
	}
	return claimPlan{match: true}
}

// decideBound is for a claim that was bound before: it never gets another volume.
func decideBound(v *claimView) (p claimPlan) {
	lost := func(reason, note, why string) {
		p.lose, p.always = true, true
		p.say(true, reason, actionBind, "%s", note)
		p.because(codeLost, why, "the claim is deleted and created again", "volume", v.claim.Spec.VolumeName)
	}
	switch {
	case v.claim.Spec.VolumeName == "":
		lost(reasonClaimLost, "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!", "the claim was bound, and does not name its volume any more")
	case v.named == nil:
		lost(reasonClaimLost, "Bound claim has lost its PersistentVolume. Data on the volume is lost!", "the volume {volume} of the claim does not exist any more")
	case v.named.Spec.ClaimRef == nil, v.named.Spec.ClaimRef.UID == v.claim.UID:
		p.bind = v.named
	default:
		lost(reasonClaimMisbound, "Two claims are bound to the same volume, this one is bound incorrectly", "the volume {volume} of the claim is bound to another claim")
	}
	return p
}

// decideNamed is for a claim whose volume a user has chosen.
func decideNamed(v *claimView) (p claimPlan) {
	name := v.claim.Spec.VolumeName
	p.pend = true
	switch {
	case v.named == nil:
		p.because(codeNotFound, "the volume {volume} that the claim names does not exist", "the volume is created", "volume", name)
	case volumes.Refers(v.named, v.claim):
		return claimPlan{bind: v.named}
	case v.named.Spec.ClaimRef != nil:
		other := v.named.Spec.ClaimRef
		p.say(true, reasonFailedBinding, actionBind, "volume %q already bound to a different claim.", name)
		p.because(codeTaken, "the volume {volume} that the claim names is bound to the claim {other}", "the volume is released by that claim, or another volume is named",
			"volume", name, "other", other.Namespace+"/"+other.Name)
		if _, ours := v.claim.Annotations[volumes.BoundByController]; ours {
			// Not even this controller binds two claims to one volume: there is no way on.
			p.pend = false
		}
	default:
		if err := fits(v.named, v.claim); err != nil {
			p.say(true, reasonVolumeMismatch, actionBind, "Cannot bind to requested volume %q: %s", name, err)
			p.because(codeMismatch, "the volume {volume} that the claim names does not fit: {why}", "the volume changes, or another one is named", "volume", name, "why", err)
			return p
		}
		return claimPlan{bind: v.named}
	}
	return p
}

// decideUnmatched is for a claim that no volume fits.
func decideUnmatched(v *claimView) (p claimPlan) {
	class := volumes.ClassOf(v.claim)
	_, selected := v.claim.Annotations[volumes.SelectedNode]
	switch {
	case !volumes.HasClass(v.claim) && v.fallback != nil:
		p.classify = v.fallback.Name
	case v.waitsForConsumer() && !selected:
		p.pend = true
		waitForConsumer(v, &p)
	case class != "":
		provision(v, class, &p)
	default:
		p.pend = true
		p.say(false, reasonFailedBinding, actionBind, "no persistent volumes available for this claim and no storage class is set")
		p.because(codeNoVolume, "no free volume fits the claim, and it has no storage class that could make one", "a volume that fits becomes available, or a default storage class is set")
	}
	return p
}

// waitForConsumer says which Pods a claim waits for.
func waitForConsumer(v *claimView, p *claimPlan) {
	class := v.class.Name
	switch pods := v.unscheduled; len(pods) {
	case 0:
		p.say(false, reasonFirstConsumer, actionBind, "waiting for first consumer to be created before binding")
		p.because(codeFirstConsumer, "the storage class {class} makes volumes for the Node of the first Pod, and no Pod that waits for a Node uses the claim", "a Pod that uses the claim is created",
			"class", class)
	case 1:
		p.say(false, reasonPodScheduled, actionBind, "waiting for pod %s to be scheduled", pods[0])
	default:
		p.say(false, reasonPodScheduled, actionBind, "waiting for pods %s to be scheduled", strings.Join(pods, ","))
	}
	if len(v.unscheduled) > 0 {
		p.because(codePodScheduled, "the storage class {class} makes volumes for the Node of the first Pod, and the scheduler has found no Node for {pods}", "the Pod gets a Node",
			"class", class, "pods", shortlist.Join(v.unscheduled, mostNamed))
	}
}

// provision says who makes a volume for a claim.
func provision(v *claimView, class string, p *claimPlan) {
	switch {
	case !v.options.Provisioning:
		p.because(codeDisabled, "no free volume fits the claim, and the controller manager was started with --enable-dynamic-provisioning=false", "a volume that fits becomes available")
	case v.class == nil:
		p.say(true, reasonProvisioningFailed, actionProvision, "storageclass.storage.k8s.io %q not found", class)
		p.because(codeNoClass, "no free volume fits the claim, and its storage class {class} does not exist", "the storage class is created, or a volume that fits becomes available", "class", class)
	case volumes.DriverOf(v.class.Provisioner) != "":
		external(v, volumes.DriverOf(v.class.Provisioner), p)
	case v.class.Provisioner == volumes.HostPathPlugin:
		p.provision, p.inTree = v.class.Provisioner, true
	case volumes.IsInTree(v.class.Provisioner):
		p.say(true, reasonProvisioningFailed, actionProvision, "no volume plugin matched name: %s", v.class.Provisioner)
		p.because(codeNoPlugin, "no free volume fits the claim, and the storage class {class} makes none: its provisioner is {provisioner}", "a volume that fits becomes available",
			"class", class, "provisioner", v.class.Provisioner)
	default:
		external(v, v.class.Provisioner, p)
	}
}

// external asks a driver for a volume.
func external(v *claimView, driver string, p *claimPlan) {
	p.provision = driver
	p.say(false, reasonExternalProvisioning, actionProvision,
		"Waiting for a volume to be created either by the external provisioner '%s' or manually by the system administrator. "+
			"If volume creation is delayed, please verify that the provisioner is running and correctly registered.", driver)
	p.because(codeProvisioner, "the provisioner {provisioner} was asked for a volume and has not made it", "the provisioner creates the volume",
		"provisioner", driver)
	if v.unfit != nil {
		p.because(codeMismatch, "the volume {volume} was made for the claim and does not fit: {why}", "the volume is deleted, and another one is made",
			"volume", v.unfit.Name, "why", fits(v.unfit, v.claim))
	}
}
