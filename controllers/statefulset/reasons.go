// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the reasons why a StatefulSet does not have the Pods that it wants.
const (
	codeOrder       = "WaitsForPod"
	codeFirstStart  = "FirstStartNotOver"
	codeNameTaken   = "PodNameTaken"
	codeClaimGoes   = "ClaimIsBeingDeleted"
	codeClaimStale  = "ClaimOfEarlierPod"
	codeVolumes     = "PodHasOtherVolumes"
	codeOnDelete    = "KeptByOnDelete"
	codePartition   = "HeldByPartition"
	codeUnavailable = "HeldByMaxUnavailable"
	codeOldPods     = "OldPodsNotEnded"
	codeDeleted     = "StatefulSetIsDeleted"
	codeBeyond      = "OrdinalsTooLarge"
)

// because adds a reason that ends with something other than the change of one object.
func (p *plan) because(code, text, ends string, params ...any) {
	p.reasons = append(p.reasons, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
}

// until adds a reason that ends with the change of an object.
func (p *plan) until(code, text, kind string, o object.Object, params ...any) {
	p.reasons = append(p.reasons, controller.Reason{
		Code: code, Text: text, Params: controller.With(params...),
		Until: runs.Object{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()},
	})
}

// waitsFor adds for which Pod the order waits. With Parallel no Pod waits for another one.
func (p *planner) waitsFor(pod *corev1.Pod, state string) {
	text := "Pod {pod} {state}"
	if p.ordered {
		text = "the next step waits for Pod {pod}, which {state} (podManagementPolicy OrderedReady)"
	}
	p.until(codeOrder, text, "Pod", pod, "pod", pod.Name, "state", state)
}

// waitsForGap adds that a Pod that was never ready stays, because a member has no Pod. That member
// gets its Pod when the other one is ready or replaced.
func (p *planner) waitsForGap(pod *corev1.Pod, missing string) {
	p.until(codeOrder, "the next step waits for Pod {pod}, which has never been ready and is not replaced, because Pod {missing} was ready and does not exist "+
		"(podManagementPolicy OrderedReady); to go on, delete Pod {pod}", "Pod", pod, "pod", pod.Name, "missing", missing)
}

// firstStarts adds that a Pod that was never ready has time left.
func (p *planner) firstStarts(pod *corev1.Pod, left time.Duration) {
	p.until(codeFirstStart, "the next step waits for Pod {pod}, which has an old template and has never been ready; its containers run, so the rollout replaces it no sooner than {time}",
		"Pod", pod, "pod", pod.Name, "time", p.now.Add(left).UTC().Format(time.RFC3339))
}

// refuseBeyond says that the last Pods are not created, because their ordinals would be too large.
func (p *planner) refuseBeyond() {
	n := beyond(p.set)
	if n == 0 {
		return
	}
	p.events.Warning(failedCreate, deciding, "%s", podFailed("Create", podName(p.set.Name, mostOrdinal+1), p.set.Name,
		fmt.Errorf("the largest ordinal is %d; make spec.ordinals.start or spec.replicas smaller, by %d together", mostOrdinal, n)))
	p.because(codeBeyond, "{pods} {pods?Pod is|Pods are} not created, because the largest ordinal is {most}", "spec.ordinals.start or spec.replicas becomes smaller",
		"pods", n, "most", mostOrdinal)
}

// nameTaken refuses to create a Pod whose name another Pod has. An earlier StatefulSet of the name
// leaves such Pods for a moment, so one that is being deleted has no Event.
func (p *planner) nameTaken(other *corev1.Pod) {
	if other.DeletionTimestamp == nil {
		p.events.Warning(failedCreate, deciding, "%s", podFailed("Create", other.Name, p.set.Name,
			fmt.Errorf("a Pod of this name exists, and this StatefulSet does not control it; delete or rename it")))
	}
	p.until(codeNameTaken, "another Pod has the name {pod}, and this StatefulSet does not control it", "Pod", other, "pod", other.Name)
}

// claimBlocks adds that a Pod waits for the end of a claim.
func (p *planner) claimBlocks(code, text string, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) {
	p.until(code, text, "PersistentVolumeClaim", claim, "claim", claim.Name, "pod", pod.Name)
}

// foreignVolumes refuses a member whose volumes are not its claims.
func (p *planner) foreignVolumes(pod *corev1.Pod, claim string) {
	err := fmt.Errorf("the Pod does not use the claim %s, and volumes cannot be changed; delete the Pod", claim)
	p.events.Warning(failedUpdate, deciding, "%s", podFailed("Update", pod.Name, p.set.Name, err))
	p.until(codeVolumes, "Pod {pod} does not use the claim {claim} that its ordinal has, so it was not made from this StatefulSet; delete the Pod",
		"Pod", pod, "pod", pod.Name, "claim", claim)
}

// old counts the Pods of other revisions that stay: those that a rollout replaces, and those below
// the partition.
func (p *planner) old() (replaced, kept int) {
	leaves := map[*corev1.Pod]bool{}
	for _, pod := range slices.Concat(p.broken, p.delete) {
		leaves[pod] = true
	}
	for _, pod := range p.replicas {
		switch {
		case revisionOf(pod) == p.update.name || terminating(pod) || leaves[pod]:
		case ordinalOf(pod) < p.partition:
			kept++
		default:
			replaced++
		}
	}
	return replaced, kept
}

// keptOnDelete adds how many Pods keep their template because of the strategy OnDelete.
func (p *planner) keptOnDelete() {
	if replaced, kept := p.old(); replaced+kept > 0 {
		p.because(codeOnDelete, "{pods} {pods?Pod has|Pods have} an old template, and the strategy OnDelete does not replace {pods?it|them}", "a user deletes what has an old template", "pods", replaced+kept)
	}
}

// keptByRollout adds why a rollout replaces no more Pods.
func (p *planner) keptByRollout(most int) {
	replaced, kept := p.old()
	if replaced > 0 {
		p.because(codeUnavailable, "{pods} {pods?Pod of an old template stays|Pods of an old template stay}: {unavailable} {unavailable?Pod is not available or is|Pods are not available or are} being replaced, and {most} may be (maxUnavailable)",
			"a Pod becomes available", "pods", replaced, "unavailable", p.countUnavailable()+len(p.delete), "most", most)
	}
	if kept > 0 {
		p.because(codePartition, "{pods} {pods?Pod keeps its template, because its ordinal is|Pods keep their template, because their ordinals are} below {partition} (partition)", "spec.updateStrategy.rollingUpdate.partition becomes smaller",
			"pods", kept, "partition", p.partition)
	}
}
