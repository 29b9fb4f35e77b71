// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// budgetsOfPod adds the budgets that select a Pod. The index answers without a look at the other
// budgets of the namespace.
func (r *reconciler) budgetsOfPod(pod cache.Item[*corev1.Pod], add func(object.Key)) {
	for key := range r.selecting.Selecting(pod.Key().Namespace, pod.Labels()) {
		add(key)
	}
}

// matters chooses the changes of Pods that budgets count: a Pod comes or goes, is selected by
// others, gets ready or unready, is being deleted, or changes its controller.
func (r *reconciler) matters(e cache.Event[*corev1.Pod]) bool {
	if !e.Old.Exists() || !e.New.Exists() {
		return true
	}
	if e.Kind == cache.Replaced || e.Old.Labels() != e.New.Labels() || e.Old.Deleting() != e.New.Deleting() || controllerUID(e.Old) != controllerUID(e.New) {
		return true
	}
	if !r.selected(e.New) {
		return false // and nothing has to be decoded
	}
	before, err := e.Old.Without(wire.Spec)
	if err != nil {
		return true // a run reports it
	}
	now, err := e.New.Without(wire.Spec)
	return err != nil || podstate.Ready(before) != podstate.Ready(now)
}

// selected reports whether any budget selects a Pod.
func (r *reconciler) selected(pod cache.Item[*corev1.Pod]) bool {
	for range r.selecting.Selecting(pod.Key().Namespace, pod.Labels()) {
		return true
	}
	return false
}

func controllerUID(pod cache.Item[*corev1.Pod]) string {
	if ref := pod.Controller(); ref != nil {
		return string(ref.UID)
	}
	return ""
}

// ofTemplate returns a mapping from a controller of Pods to the budgets that select the Pods of
// its template: a change of its size changes what they expect.
func ofTemplate[T object.Object](r *reconciler, labelsOf func(T) map[string]string) func(cache.Item[T], func(object.Key)) {
	return func(item cache.Item[T], add func(object.Key)) {
		o, err := item.Object()
		if err != nil {
			return // the informer reports it
		}
		for key := range r.selecting.Selecting(item.Meta().Namespace, object.LabelsOf(labelsOf(o))) {
			add(key)
		}
	}
}

// podsOfSeveral adds the Pods of a budget that another one selects too.
func (r *reconciler) podsOfSeveral(item cache.Item[*policyv1.PodDisruptionBudget], add func(object.Key)) {
	pdb, err := item.Object()
	if err != nil {
		return // the informer reports it
	}
	selector, err := selectorOf(pdb)
	if err != nil {
		return // the status of the budget says so
	}
	for key, pod := range r.labelled.Selected(r.pods.Snapshot(), pdb.Namespace, selector) {
		if len(r.budgetsSelecting(pdb.Namespace, pod.Labels())) > 1 {
			add(key)
		}
	}
}

func labelsOfReplicationController(rc *corev1.ReplicationController) map[string]string {
	if rc.Spec.Template == nil {
		return nil
	}
	return rc.Spec.Template.Labels
}

// alone chooses ReplicaSets without a Deployment, whose own size counts: those without a controller, and those of a custom
// kind.
func alone(e cache.Event[*appsv1.ReplicaSet]) bool {
	return !isDeployment(e.Item().Meta().Controller())
}
