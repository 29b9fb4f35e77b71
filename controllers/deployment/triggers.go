// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// selectorIndex finds Deployments by one label that their selectors ask for, so
// that a set without owner finds those that may want it without asking all.
const selectorIndex = "deployment/selector"

// anyLabels is where Deployments stand whose selectors name no label with its
// value. No label is written like this.
const anyLabels = "*"

func bySelector(item cache.Item[*appsv1.Deployment]) ([]string, error) {
	d, err := item.Object()
	if err != nil || d.Spec.Selector == nil {
		return nil, err
	}
	labels := d.Spec.Selector.MatchLabels
	wanted := anyLabels
	if len(labels) > 0 {
		key := slices.Min(slices.Collect(maps.Keys(labels)))
		wanted = key + "=" + labels[key]
	}
	return []string{d.Namespace + "/" + wanted}, nil
}

// orphaned has the Deployments looked at that may adopt a set without owner. They
// decide themselves whether they do.
func (r *reconciler) orphaned(e cache.Event[*appsv1.ReplicaSet], add func(object.Key)) {
	if !e.New.Exists() {
		return
	}
	m := e.New.Meta()
	if m.Controller() != nil || m.Deleting() {
		return
	}
	if e.Kind == cache.Updated && e.Old.Meta().Controller() == nil && e.Old.Meta().Labels == m.Labels {
		return
	}
	snapshot := r.deployments.Snapshot()
	values := []string{anyLabels}
	for key, label := range m.Labels.All() {
		values = append(values, key+"="+label)
	}
	for _, wanted := range values {
		for key := range snapshot.Index(selectorIndex, m.Namespace+"/"+wanted) {
			add(key)
		}
	}
}

// podGone has a Deployment with the Recreate strategy looked at when one of its
// Pods is gone: it may be the last that it waited for.
func (r *reconciler) podGone(e cache.Event[*corev1.Pod], add func(object.Key)) {
	if e.Kind != cache.Deleted && e.Kind != cache.Replaced {
		return
	}
	pod := e.Old.Meta()
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
