// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ephemeralvolume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// isNew chooses the Pods with ephemeral volumes that the informer has not shown before. The
// volumes of a Pod do not change.
func isNew(e cache.Event[*corev1.Pod]) bool {
	return e.New.Exists() && (e.Kind != cache.Updated) && hasEphemeral(e.New)
}

// hasEphemeral reports whether a Pod has an ephemeral volume. A Pod that cannot be decoded is left
// to its run, which fails and says so.
func hasEphemeral(item cache.Item[*corev1.Pod]) bool {
	if !volumes.MayHaveEphemeral(item) {
		return false
	}
	pod, err := item.Object()
	return err != nil || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}

// podsOf is a mapping from a claim to the Pods that have an ephemeral volume of its name.
func (r *reconciler) podsOf(claim cache.Item[*corev1.PersistentVolumeClaim], add func(object.Key)) {
	for key, pod := range r.byClaim.Find(claim.Key().String()) {
		if hasEphemeral(pod) {
			add(key)
		}
	}
}

// changesOwners chooses the events after which a Pod may lack its claim, or have it at last: the
// claim is gone, or has other owners.
func changesOwners(e cache.Event[*corev1.PersistentVolumeClaim]) bool {
	if !e.Old.Exists() || !e.New.Exists() || e.Kind == cache.Replaced {
		return e.Old.Exists()
	}
	was, now := e.Old.Meta().Controller(), e.New.Meta().Controller()
	return (was == nil) != (now == nil) || was != nil && was.UID != now.UID
}
