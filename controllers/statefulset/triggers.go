// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// setsOfPod enqueues the StatefulSet that a Pod belongs to, and the one after which it is named.
// The latter may adopt the Pod, or wait for its end, because the Pod has the name of a member.
func (r *reconciler) setsOfPod(pod cache.Item[*corev1.Pod], add func(object.Key)) {
	m := pod.Key()
	named, _, ok := splitName(m.Name)
	if owner := pod.Controller(); owner != nil && owner.Kind == kind.Kind && strings.HasPrefix(owner.APIVersion, kind.Group+"/") {
		add(object.Key{Namespace: m.Namespace, Name: owner.Name})
		ok = ok && owner.Name != named
	}
	if key := (object.Key{Namespace: m.Namespace, Name: named}); ok && r.sets.Snapshot().Get(key).Exists() {
		add(key)
	}
}

// setsOfClaim enqueues the StatefulSets of which a template and an ordinal give the name of a
// claim. The names of both can have dashes, so there may be several.
func (r *reconciler) setsOfClaim(claim cache.Item[*corev1.PersistentVolumeClaim], add func(object.Key)) {
	m := claim.Meta()
	rest, _, ok := splitName(m.Name)
	if !ok {
		return
	}
	snapshot := r.sets.Snapshot()
	for i := range len(rest) {
		if rest[i] != '-' {
			continue
		}
		key := object.Key{Namespace: m.Namespace, Name: rest[i+1:]}
		item := snapshot.Get(key)
		if !item.Exists() {
			continue
		}
		set, err := item.Object()
		if err != nil || hasTemplate(set, rest[:i]) {
			add(key) // an error is for the run to report
		}
	}
}

func hasTemplate(set *appsv1.StatefulSet, name string) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		if set.Spec.VolumeClaimTemplates[i].Name == name {
			return true
		}
	}
	return false
}

// podState is what the decisions read of a Pod that can change.
type podState struct {
	owner          types.UID
	labels         object.Labels
	deleting       bool
	phase          corev1.PodPhase
	ready          bool
	since          time.Time
	never, started bool // see neverready.go
}

// matters chooses the changes of Pods on which a decision depends.
func matters(e cache.Event[*corev1.Pod]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	was, err := stateOf(e.Old)
	if err != nil {
		return true
	}
	now, err := stateOf(e.New)
	return err != nil || was != now
}

func stateOf(item cache.Item[*corev1.Pod]) (podState, error) {
	pod, err := item.Without(wire.Spec)
	if err != nil {
		return podState{}, err
	}
	if ready := podstate.Condition(pod, corev1.PodReady); ready != nil && ready.Status != corev1.ConditionTrue {
		if pod, err = item.Object(); err != nil { // neverReady counts the containers of the spec
			return podState{}, err
		}
	}
	m := item.Meta()
	s := podState{labels: m.Labels, deleting: m.Deleting(), phase: pod.Status.Phase, never: neverReady(pod)}
	if owner := m.Controller(); owner != nil {
		s.owner = owner.UID
	}
	s.since, s.ready = podstate.ReadySince(pod)
	s.since = s.since.UTC()
	s.started = hopelessIn(pod, time.Time{}) > 0
	return s, nil
}

// claimMatters chooses the changes of claims on which a decision depends: that one appears or goes,
// and changes of its owners.
func claimMatters(e cache.Event[*corev1.PersistentVolumeClaim]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	was, now := e.Old.Meta(), e.New.Meta()
	return was.Deleting() != now.Deleting() || !equality.Semantic.DeepEqual(was.OwnerReferences, now.OwnerReferences)
}
