// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
)

// createsAtOnce is how many Pods one run creates. The next run creates more.
// Source: k8s.io/kubernetes/pkg/controller/statefulset, MaxBatchSize.
const createsAtOnce = 500

// view is what a run sees. All of it is read-only.
type view struct {
	set  *appsv1.StatefulSet
	pods []*corev1.Pod // the members, in the order of their ordinals, two of one ordinal never
	now  time.Time

	// current is the revision before the rollout, and update the one that the rollout leads to.
	// They are the same if there is no rollout.
	current, update version
	collisions      *int32 // for the status

	// foreign returns the Pod of a name that is no member, or nil.
	foreign func(name string) *corev1.Pod
	// claim returns the claim of a name, or nil.
	claim func(name string) *corev1.PersistentVolumeClaim

	options Options
}

// version is a revision and what it asks for.
type version struct {
	name     string
	template *corev1.PodTemplateSpec
}

// plan is what a run does, in this order. If a step fails, those after it are not taken.
type plan struct {
	restart []*corev1.Pod // Pods that have ended; they are deleted, and created again later
	create  []*corev1.Pod
	claims  []claimChange
	relabel []*corev1.Pod // Pods without the labels of their identity
	broken  []*corev1.Pod // for a rollout: Pods that are not available, unless they have changed since
	delete  []*corev1.Pod // for a smaller size, or for a rollout

	// neverReady is the Pod of broken for which the order waits. It is nil if there is none. Its
	// deletion has an Event.
	neverReady *corev1.Pod

	status  appsv1.StatefulSetStatus // without counts of Pods
	after   time.Duration            // when to look again; 0 is when something changes
	events  events.List
	reasons []controller.Reason
	failure error // why the rollout cannot be planned
	refused bool  // the spec is not acted on, so the status stays as it is

	// unavailable is how many wanted Pods are not available, for the metric. It is nil if the
	// run ends before the rollout.
	unavailable *int
}

// claimChange is a claim that is created, or that gets other owners.
type claimChange struct {
	pod    *corev1.Pod
	claim  *corev1.PersistentVolumeClaim
	create bool
}

// planner makes a plan.
type planner struct {
	view
	plan

	replicas  []*corev1.Pod // members that are wanted, ascending
	condemned []*corev1.Pod // members that are not, descending
	ordered   bool          // Pods come and go one after the other
	partition int           // ordinals below it keep the current revision
}

// decide returns what to do for a StatefulSet.
//
// A larger or smaller size comes before a rollout. With OrderedReady, the first Pod that is not
// available ends the decision: what comes after it in the order waits.
func decide(v view) plan {
	p := &planner{view: v, ordered: v.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement, partition: start(v.set)}
	if rolling := v.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		p.partition += int(*rolling.Partition)
	}
	for _, pod := range v.pods {
		if wants(v.set, ordinalOf(pod)) {
			p.replicas = append(p.replicas, pod)
		} else {
			p.condemned = append(p.condemned, pod)
		}
	}
	slices.Reverse(p.condemned)
	p.status = statusOf(v)
	p.refuseBeyond()
	p.step()
	p.lookAgain()
	return p.plan
}

// step takes the steps of a run until one of them has to wait.
func (p *planner) step() {
	if p.set.Spec.UpdateStrategy.Type == appsv1.RecreateStatefulSetStrategyType {
		if !p.options.Recreate {
			p.unknownStrategy()
			return
		}
		if p.recreate() {
			return
		}
	}
	if p.fill() || p.shrink() {
		return
	}
	p.roll()
}

// fill sees to the Pods that are wanted, and reports whether the order has to wait for one.
func (p *planner) fill() (wait bool) {
	if p.ordered {
		at := 0
		for ordinal := start(p.set); wants(p.set, ordinal); ordinal++ {
			if at == len(p.replicas) || ordinalOf(p.replicas[at]) != ordinal {
				p.add(ordinal)
				return true
			}
			if p.tend(p.replicas[at]) {
				return true
			}
			at++
		}
		return false
	}
	at := 0
	for ordinal := start(p.set); wants(p.set, ordinal) && len(p.create) < createsAtOnce; ordinal++ {
		if at < len(p.replicas) && ordinalOf(p.replicas[at]) == ordinal {
			at++
			continue
		}
		p.add(ordinal)
	}
	for _, pod := range p.replicas {
		p.tend(pod)
	}
	return false
}

// add plans the Pod of an ordinal that has none, unless its name or its claims are in the way.
func (p *planner) add(ordinal int) {
	pod := newPod(p.set, p.versionOf(ordinal), ordinal)
	if other := p.foreign(pod.Name); other != nil {
		p.nameTaken(other)
		return
	}
	for _, template := range claimTemplates(p.set) {
		name := claimName(p.set, template.Name, ordinal)
		claim := p.claim(name)
		switch {
		case claim == nil:
		case isStale(claim, p.set, pod):
			p.claimBlocks(codeClaimStale, "the claim {claim} still belongs to an earlier Pod {pod}, with which it is deleted (whenScaled is Delete)", pod, claim)
			return
		case claim.DeletionTimestamp != nil:
			p.events.Warning(failedCreate, deciding, "%s", podFailed("Create", pod.Name, p.set.Name, fmt.Errorf("pvc %s is being deleted", name)))
			p.claimBlocks(codeClaimGoes, "the claim {claim} of Pod {pod} is being deleted", pod, claim)
			return
		}
	}
	p.create = append(p.create, pod)
}

// versionOf returns the revision from which the Pod of an ordinal is created. A Pod that the
// rollout has not reached comes back as it was.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, newVersionedStatefulSetPod.
func (p *planner) versionOf(ordinal int) version {
	strategy := p.set.Spec.UpdateStrategy
	if strategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return p.update
	}
	reached := p.partition
	if strategy.RollingUpdate == nil {
		reached = start(p.set) + int(p.set.Status.CurrentReplicas)
	}
	if ordinal < reached {
		return p.current
	}
	return p.update
}

// tend sees to a Pod that exists and is wanted, and reports whether the order has to wait for it.
func (p *planner) tend(pod *corev1.Pod) (wait bool) {
	switch phase := pod.Status.Phase; {
	case phase == corev1.PodFailed || phase == corev1.PodSucceeded:
		// A Pod that was evicted, or whose node was shut down, may have succeeded too.
		if !terminating(pod) {
			p.restart = append(p.restart, pod)
		}
		p.waitsFor(pod, "has ended and is replaced")
		return true
	case phase == corev1.PodPending && !terminating(pod):
		if !p.completeClaims(pod) {
			return true
		}
	}
	if p.ordered {
		switch left, ready := availableIn(p.set, pod, p.now); {
		case terminating(pod):
			p.waitsFor(pod, "is being deleted")
			return true
		case !ready || pod.Status.Phase != corev1.PodRunning:
			if !p.replaceNeverReady(pod) {
				p.waitsFor(pod, "is not ready")
			}
			return true
		case left > 0:
			p.waitsFor(pod, "is ready, and not available yet (minReadySeconds)")
			return true
		}
	}
	return p.mend(pod)
}

// completeClaims plans the claims that a Pending Pod lacks. A user may have deleted one, and the
// Pod would wait for it forever. It returns false if one is being deleted.
func (p *planner) completeClaims(pod *corev1.Pod) bool {
	for _, wanted := range newClaims(p.set, ordinalOf(pod)) {
		switch claim := p.claim(wanted.Name); {
		case claim == nil:
			p.claims = append(p.claims, claimChange{pod: pod, claim: wanted, create: true})
		case claim.DeletionTimestamp != nil:
			p.claimBlocks(codeClaimGoes, "the claim {claim} of Pod {pod} is being deleted", pod, claim)
			return false
		}
	}
	p.own(pod)
	return true
}

// own plans the owners that the retention policy wants the claims of a Pod to have.
func (p *planner) own(pod *corev1.Pod) {
	for _, template := range claimTemplates(p.set) {
		claim := p.claim(claimName(p.set, template.Name, ordinalOf(pod)))
		if claim == nil {
			continue
		}
		refs, differs, conflicting := refer(claim, p.set, pod)
		if conflicting && (differs || pod.Status.Phase == corev1.PodPending) {
			p.events.Warning(conflictingController, deciding, "PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, "+
				"the retention policy is ignored for this claim", claim.Name)
		}
		if differs {
			changed := claim.DeepCopy()
			changed.OwnerReferences = refs
			p.claims = append(p.claims, claimChange{pod: pod, claim: changed})
		}
	}
}

// mend plans what a member lacks: the labels of its identity, and the owners of its claims. It
// reports whether the Pod cannot be a member, because its volumes are not the claims.
func (p *planner) mend(pod *corev1.Pod) (wait bool) {
	if terminating(pod) {
		return false
	}
	if claim, lacks := lacksVolume(p.set, pod); lacks {
		p.foreignVolumes(pod, claim)
		return true
	}
	if pod.Status.Phase != corev1.PodPending { // that of a Pending Pod is planned already
		p.own(pod)
	}
	if pod.Labels[appsv1.StatefulSetPodNameLabel] != pod.Name {
		p.relabel = append(p.relabel, pod)
	}
	return false
}

// shrink plans the deletion of Pods that are not wanted, those of the highest ordinals first. With
// OrderedReady it is one Pod, and none while another one is not available. It reports whether
// a rollout has to wait.
func (p *planner) shrink() (wait bool) {
	for _, pod := range p.condemned {
		p.own(pod)
	}
	for i, pod := range p.condemned {
		switch {
		case terminating(pod) && p.ordered:
			p.waitsFor(pod, "is being deleted")
			return true
		case terminating(pod):
			continue
		case p.ordered && !p.mayLeave(pod, p.condemned[i+1:]):
			return true
		}
		p.delete = append(p.delete, pod)
		if p.ordered {
			return true
		}
	}
	return false
}

// mayLeave reports whether the Pod of the highest ordinal may be deleted in order. It may if it is
// available. One that is not available may if no Pod below it is in the same state, or if it was
// never ready.
func (p *planner) mayLeave(pod *corev1.Pod, below []*corev1.Pod) bool {
	healthy := runningAndReady(pod) && available(p.set, pod, p.now)
	if healthy || neverReady(pod) {
		return true
	}
	lower := slices.IndexFunc(below, func(other *corev1.Pod) bool {
		return terminating(other) || !available(p.set, other, p.now)
	})
	if lower < 0 {
		return true
	}
	p.waitsFor(pod, "is not available, nor is one below it, and Pods are deleted in order")
	return false
}

// lookAgain sets when the next Pod becomes available, of which no change tells.
func (p *planner) lookAgain() {
	for _, pod := range p.pods {
		if left, ready := availableIn(p.set, pod, p.now); ready && left > 0 {
			p.wake(left)
		}
	}
}

// wake has the next run come after a time at the latest.
func (p *planner) wake(after time.Duration) {
	if p.after == 0 || after < p.after {
		p.after = after
	}
}

// statusOf returns the status without counts.
func statusOf(v view) appsv1.StatefulSetStatus {
	return appsv1.StatefulSetStatus{
		ObservedGeneration: v.set.Generation,
		CurrentRevision:    v.current.name,
		UpdateRevision:     v.update.name,
		CollisionCount:     v.collisions,
		Conditions:         slices.Clone(v.set.Status.Conditions),
	}
}

// setCondition sets the condition Progressing. Its time changes with its status alone.
func setCondition(s *appsv1.StatefulSetStatus, status corev1.ConditionStatus, reason, message string, now time.Time) {
	c := appsv1.StatefulSetCondition{
		Type: appsv1.StatefulSetProgressing, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	}
	at := slices.IndexFunc(s.Conditions, func(c appsv1.StatefulSetCondition) bool { return c.Type == appsv1.StatefulSetProgressing })
	if at < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if s.Conditions[at].Status == status {
		c.LastTransitionTime = s.Conditions[at].LastTransitionTime
	}
	s.Conditions[at] = c
}
