// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// owners are those of an object, by what is known of them. An owner that cannot be looked
// up counts as existing: an object is deleted only for reasons that are certain.
type owners struct{ solid, unknown, dangling, waiting []types.UID }

// decision is what becomes of an object that is not being deleted.
type decision struct {
	drop   []types.UID                // references to remove from it
	delete metav1.DeletionPropagation // "": it is not deleted
}

// decide returns the decision about an object with these owners and finalizers.
//
// Source of the rules: k8s.io/kubernetes/pkg/controller/garbagecollector,
// attemptToDeleteItem.
func decide(o owners, finalizers []string, hasDependents bool) decision {
	switch {
	case len(o.solid)+len(o.unknown) > 0:
		// The reference to an owner that waits is removed too: the owner would wait for
		// ever for an object that another owner keeps. References are removed by their
		// UID; of two with the same UID, the true one counts.
		drop := without(o.dangling, o.unknown)
		return decision{drop: without(append(drop, o.waiting...), o.solid)}
	case len(o.dangling)+len(o.waiting) == 0:
		return decision{}
	case len(o.waiting) > 0 && hasDependents:
		// Its owner waits until all its dependents are gone.
		return decision{delete: metav1.DeletePropagationForeground}
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return decision{delete: metav1.DeletePropagationOrphan}
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return decision{delete: metav1.DeletePropagationForeground}
	}
	return decision{delete: metav1.DeletePropagationBackground}
}

// without returns the UIDs that are not among others.
func without(uids, others []types.UID) []types.UID {
	return slices.DeleteFunc(slices.Clone(uids), func(uid types.UID) bool { return slices.Contains(others, uid) })
}
