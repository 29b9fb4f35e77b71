// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// Reasons of the events about a rollback that an annotation requests. Source:
// k8s.io/kubernetes/pkg/controller/deployment/util.
const (
	reasonRollback          = "DeploymentRollback"
	reasonRollbackUnknown   = "DeploymentRollbackRevisionNotFound"
	reasonRollbackUnchanged = "DeploymentRollbackTemplateUnchanged"
)

// rollbackTo reads the annotation by which old clients request a rollback. It was a field
// of extensions/v1beta1. kubectl rollout undo does not use it, it changes the template. 0
// is the revision before the current one.
func rollbackTo(d *appsv1.Deployment) (revision int64, asked bool) {
	revision, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedRollbackTo], 10, 64)
	return revision, err == nil
}

// rollback gives the Deployment the template of a revision, and takes the request
// away in any case. Nothing else is done before that is written.
func (p *planner) rollback(revision int64) {
	if p.current == nil {
		// The current template has no revision yet, so the revision before it is not
		// known. Next time it can.
		p.create(0)
		p.conclude()
		return
	}
	if len(p.plan.changes) > 0 {
		p.count() // the same: its revision is about to change
		return
	}
	d := p.deployment.DeepCopy()
	delete(d.Annotations, appsv1.DeprecatedRollbackTo)
	p.plan.rollback = d
	if revision == 0 {
		if revision = previousRevision(p.sets()); revision == 0 {
			p.plan.events.Warning(reasonRollbackUnknown, actionReconcile, "Unable to find last revision.")
			return
		}
	}
	sets := p.sets()
	at := slices.IndexFunc(sets, func(set *appsv1.ReplicaSet) bool { return revisionOf(set) == revision })
	if at < 0 {
		p.plan.events.Warning(reasonRollbackUnknown, actionReconcile, "Unable to find the revision to rollback to.")
		return
	}
	switch target := sets[at]; {
	case sameTemplate(&target.Spec.Template, &d.Spec.Template):
		p.plan.events.Warning(reasonRollbackUnchanged, actionReconcile,
			"The rollback revision contains the same template as current deployment %q", d.Name)
	default:
		d.Spec.Template = *target.Spec.Template.DeepCopy()
		d.Spec.Template.Labels = withoutHash(d.Spec.Template.Labels)
		d.Annotations = restored(d, target)
		p.plan.events.Normal(reasonRollback, actionReconcile, "Rolled back deployment %q to revision %d", d.Name, revision)
	}
}

// restored returns the annotations of a Deployment as they were at the time of a
// set, so that a change cause belongs to the template that it was given for.
func restored(d *appsv1.Deployment, set *appsv1.ReplicaSet) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, set.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return ownAnnotations[key] })
	for key, is := range d.Annotations {
		if ownAnnotations[key] {
			annotations[key] = is
		}
	}
	return annotations
}
