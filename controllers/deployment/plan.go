// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// view is all that a plan is made from. The objects are read-only.
type view struct {
	deployment *appsv1.Deployment
	sets       []*appsv1.ReplicaSet // that the Deployment manages, in any order
	// pods are those of sets that are to have none, by the UID of the set. They
	// count with the Recreate strategy alone, and may be left out with others.
	pods map[types.UID][]*corev1.Pod
	now  time.Time
}

// plan is what to do in one run, in the order in which its parts stand here. A
// rollback excludes the rest.
type plan struct {
	rollback *appsv1.Deployment // the planned Deployment; nil: no rollback
	create   *appsv1.ReplicaSet // nil: nothing to create
	changes  []*change          // of sets that exist
	remove   []*appsv1.ReplicaSet
	status   appsv1.DeploymentStatus
	revision string // of the Deployment; written with the status
	events   events.List
	reasons  []controller.Reason // why the Deployment is not complete
	// after is when to look again though nothing has changed; 0 is never.
	after time.Duration
}

// change is the planned state of a ReplicaSet.
type change struct {
	set             *appsv1.ReplicaSet // as it is
	replicas        int32
	minReadySeconds int32
	annotations     map[string]string // those that differ
}

// actionReconcile is the action of all Events about Deployments.
const actionReconcile = "Reconcile"

// scaled is the event about a new size.
func scaled(set *appsv1.ReplicaSet, from, to int32) events.Planned {
	direction := "up"
	if to < from {
		direction = "down"
	}
	return events.Planned{
		Reason: "ScalingReplicaSet", Action: actionReconcile,
		Note: fmt.Sprintf("Scaled %s replica set %s from %d to %d", direction, set.Name, from, to),
	}
}

// planner makes a plan. It lives for one decision.
type planner struct {
	view
	podlimits.Limits
	current *appsv1.ReplicaSet   // the set with the Deployment's template; nil: there is none yet
	old     []*appsv1.ReplicaSet // all others, from old to new
	plan    plan
}

// decide returns what a Deployment needs next. It changes nothing that it is given. It
// returns an error if the Deployment cannot be reconciled in its present form.
func decide(v view) (plan, error) {
	limits, err := podlimits.Deployment(v.deployment)
	if err != nil {
		return plan{}, err
	}
	p := planner{view: v, Limits: limits}
	p.current, p.old = split(v.deployment, v.sets)
	p.plan.status = *v.deployment.Status.DeepCopy()
	p.plan.revision = v.deployment.Annotations[revisionAnnotation]
	if err := p.choose(); err != nil {
		return plan{}, err
	}
	p.plan.after = p.untilDeadline()
	p.plan.reasons = p.reasons()
	return p.plan, nil
}

// selectingAll is the plan for a Deployment whose selector is empty, which would
// have it take every set of its namespace. The API server refuses such selectors
// in apps/v1.
func selectingAll(d *appsv1.Deployment) plan {
	p := plan{status: *d.Status.DeepCopy(), revision: d.Annotations[revisionAnnotation]}
	p.status.ObservedGeneration = d.Generation
	p.events.Warning("SelectingAll", actionReconcile, "This deployment is selecting all pods. A non-empty selector is required.")
	return p
}

// choose picks one of the ways that a Deployment can be worked on.
func (p *planner) choose() error {
	d := p.deployment
	if d.DeletionTimestamp != nil {
		p.count()
		return nil
	}
	p.pauseOrResume()
	p.renewCurrent()
	revision, rollback := rollbackTo(d)
	switch {
	case d.Spec.Paused:
		p.resize()
		if !rollback {
			p.forget()
		}
		p.count()
	case rollback:
		p.rollback(revision)
	case p.resized():
		p.resize()
		p.count()
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		p.recreate()
		p.conclude()
	case d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType:
		p.roll()
		p.conclude()
	default:
		return fmt.Errorf("deployment strategy %q is not known; RollingUpdate and Recreate are", d.Spec.Strategy.Type)
	}
	return nil
}

// conclude ends a step of a rollout.
func (p *planner) conclude() {
	p.count()
	p.progress()
	if complete(p.deployment, &p.plan.status) {
		p.forget()
	}
}

// sets returns all sets, the current one first, in a slice of the caller's own.
func (p *planner) sets() []*appsv1.ReplicaSet {
	all := make([]*appsv1.ReplicaSet, 0, 1+len(p.old))
	if p.current != nil {
		all = append(all, p.current)
	}
	return append(all, p.old...)
}

// renewCurrent gives the current set what it takes over from the Deployment, and
// the Deployment the revision of the set.
func (p *planner) renewCurrent() {
	if p.current == nil {
		return
	}
	next := nextRevision(p.old)
	annotations := inherited(p.deployment, p.current)
	maps.Copy(annotations, revised(p.current, next))
	if len(annotations) > 0 || p.current.Spec.MinReadySeconds != p.deployment.Spec.MinReadySeconds {
		c := p.change(p.current)
		c.minReadySeconds = p.deployment.Spec.MinReadySeconds
		maps.Copy(c.annotations, annotations)
	}
	before := p.plan.revision
	p.plan.revision = p.current.Annotations[revisionAnnotation]
	if revision, changes := annotations[revisionAnnotation]; changes {
		p.plan.revision = revision
	}
	// A rollout begins with a set that was there before: one that is rolled back
	// to, or one that was created by a run that could not note it any more. Its
	// time counts from here.
	begins := before != "" && before != p.plan.revision
	if begins && !p.deployment.Spec.Paused || condition(&p.plan.status, appsv1.DeploymentProgressing) == nil {
		p.progressing(corev1.ConditionTrue, reasonFound, fmt.Sprintf("Found new replica set %q", p.current.Name))
	}
}

// create makes the current set, as large as given.
func (p *planner) create(replicas int32) {
	set := newSet(p.deployment, replicas)
	set.Annotations = inherited(p.deployment, set)
	maps.Copy(set.Annotations, sized(set, p.Limits))
	p.plan.revision = strconv.FormatInt(nextRevision(p.old), 10)
	set.Annotations[revisionAnnotation] = p.plan.revision
	p.progressing(corev1.ConditionTrue, reasonCreated, fmt.Sprintf("Created new replica set %q", set.Name))
	p.plan.create, p.current = set, set
}

// change returns the planned change of a set.
func (p *planner) change(set *appsv1.ReplicaSet) *change {
	at := slices.IndexFunc(p.plan.changes, func(c *change) bool { return c.set == set })
	if at >= 0 {
		return p.plan.changes[at]
	}
	c := &change{set: set, replicas: size(set), minReadySeconds: set.Spec.MinReadySeconds, annotations: map[string]string{}}
	p.plan.changes = append(p.plan.changes, c)
	return c
}

// scale sets the size of a set that exists.
func (p *planner) scale(set *appsv1.ReplicaSet, replicas int32) {
	if replicas == size(set) {
		return
	}
	c := p.change(set)
	c.replicas = replicas
	maps.Copy(c.annotations, sized(set, p.Limits))
}

// mark writes the size of the Deployment into the annotations of a set.
func (p *planner) mark(set *appsv1.ReplicaSet) {
	if annotations := sized(set, p.Limits); len(annotations) > 0 {
		maps.Copy(p.change(set).annotations, annotations)
	}
}

// forget removes old sets beyond the history limit, the lowest revisions first.
// The largest limit is none.
// One that has Pods, or whose controller has not seen its size, stays and still
// counts.
func (p *planner) forget() {
	limit := p.deployment.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return
	}
	var kept []*appsv1.ReplicaSet
	for _, set := range p.old {
		if set.DeletionTimestamp == nil {
			kept = append(kept, set)
		}
	}
	slices.SortStableFunc(kept, func(a, b *appsv1.ReplicaSet) int {
		return int(min(max(revisionOf(a)-revisionOf(b), -1), 1))
	})
	for _, set := range kept[:max(0, len(kept)-int(*limit))] {
		if size(set) == 0 && set.Status.Replicas == 0 && set.Generation <= set.Status.ObservedGeneration {
			p.plan.remove = append(p.plan.remove, set)
		}
	}
}
