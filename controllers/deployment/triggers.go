// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
)

func selectorOf(d *appsv1.Deployment) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(d.Spec.Selector)
}

// adopters enqueues the Deployments that select a set without managing controller. Their
// runs adopt it.
func (r *reconciler) adopters(set cache.Item[*appsv1.ReplicaSet], add func(object.Key)) {
	m := set.Meta()
	if m.Controller() != nil || m.Deleting() {
		return
	}
	for key := range r.selecting.Selecting(m.Namespace, m.Labels) {
		add(key)
	}
}

// claimChanged chooses sets that may be others' than before.
func claimChanged(e cache.Event[*appsv1.ReplicaSet]) bool {
	return e.Kind != cache.Updated || e.Old.Meta().Controller() != nil || predicate.LabelsChanged(e)
}

// waitsFor adds the Deployment of a Pod if it has the Recreate strategy: the Pod, which is
// gone, may be the last that it waited for.
func (r *reconciler) waitsFor(gone cache.Item[*corev1.Pod], add func(object.Key)) {
	pod := gone.Meta()
	owner := pod.Controller()
	if owner == nil || owner.Kind != "ReplicaSet" {
		return
	}
	set := r.sets.Snapshot().Get(object.Key{Namespace: pod.Namespace, Name: owner.Name})
	if !set.Exists() || set.Meta().UID != owner.UID {
		return
	}
	owner = set.Meta().Controller()
	if owner == nil || owner.Kind != kind.Kind {
		return
	}
	key := object.Key{Namespace: pod.Namespace, Name: owner.Name}
	item := r.deployments.Snapshot().Get(key)
	if !item.Exists() || item.Meta().UID != owner.UID {
		return
	}
	d, err := item.Object()
	if err != nil || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		add(key) // an error is for the run to report
	}
}
