// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/revisions"
	"github.com/setpoint-io/setpoint/object"
)

// history is the revisions of a DaemonSet, and which of them is its template as it is now.
type history struct {
	now        *appsv1.ControllerRevision
	old        []*appsv1.ControllerRevision // sorted
	collisions *int32
}

// remember returns the history of a DaemonSet, with a revision of its template as it is now.
// Source: k8s.io/kubernetes/pkg/controller/daemon, constructHistory.
func (r *reconciler) remember(ctx context.Context, set *appsv1.DaemonSet, selector labels.Selector, pods []*pod) (history, error) {
	state, err := revisions.DaemonSet(set)
	if err != nil {
		return history{}, err
	}
	all, err := r.history.Claim(ctx, revisions.Owner{
		Object: set, Kind: kind.GroupVersionKind(), Selector: selector, Live: owned.LiveFrom(r.sets.Server(), set),
	})
	if err != nil {
		return history{}, fmt.Errorf("finding the revisions: %w", err)
	}
	for i, revision := range all {
		if all[i], err = r.labelled(ctx, revision); err != nil {
			return history{}, err
		}
	}
	ensured, err := r.history.Ensure(ctx, state, all, set.Status.CollisionCount)
	if err != nil {
		return history{}, err
	}
	h := history{now: ensured.Revision, collisions: ensured.Collisions}
	equal := map[string]bool{}
	for _, revision := range state.Equal(all) {
		equal[revision.Name] = true
	}
	for _, revision := range all {
		switch {
		case revision.Name == h.now.Name:
		case equal[revision.Name]:
			if err := r.merge(ctx, revision, h.now, pods); err != nil {
				return history{}, err
			}
		default:
			h.old = append(h.old, revision)
		}
	}
	return h, nil
}

// labelled returns a revision with the label that has its hash. One of an old cluster gets its
// name as that.
func (r *reconciler) labelled(ctx context.Context, revision *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if _, found := revision.Labels[hashLabel]; found {
		return revision, nil
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{
		"uid": revision.UID, "labels": map[string]string{hashLabel: revision.Name},
	}})
	if err != nil {
		return nil, err
	}
	now, err := r.revisions.Patch(ctx, object.KeyOf(revision), patch)
	if err != nil {
		return nil, fmt.Errorf("labelling ControllerRevision %s: %w", object.KeyOf(revision), err)
	}
	return now, nil
}

// merge deletes a revision of which another one has the same data. Its Pods become those of the
// other one before that, so that no rollout replaces them.
func (r *reconciler) merge(ctx context.Context, from, into *appsv1.ControllerRevision, pods []*pod) error {
	for _, p := range pods {
		if p.hash != from.Labels[hashLabel] || p.hash == into.Labels[hashLabel] {
			continue
		}
		patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{
			"uid": p.uid, "labels": map[string]string{hashLabel: into.Labels[hashLabel]},
		}})
		if err != nil {
			return err
		}
		_, err = r.pods.Patch(ctx, object.Key{Namespace: p.namespace, Name: p.name}, patch)
		if err != nil && !client.Absent(err) {
			// A conflict too: other writes came first each time that the server applied the patch.
			return fmt.Errorf("labelling Pod %s/%s: %w", p.namespace, p.name, err)
		}
		p.hash = into.Labels[hashLabel] // this run would replace it as an old one
	}
	return r.history.Delete(ctx, from)
}

// prune deletes old revisions beyond the limit. One that a Pod was created from stays, as long as
// that Pod exists.
func (r *reconciler) prune(ctx context.Context, set *appsv1.DaemonSet, h history, pods []*pod) error {
	if set.Spec.RevisionHistoryLimit == nil {
		return nil
	}
	used := map[string]bool{}
	for _, p := range pods {
		used[p.hash] = true
	}
	inUse := func(revision *appsv1.ControllerRevision) bool { return used[revision.Labels[hashLabel]] }
	for _, revision := range revisions.SurplusOfAll(h.old, *set.Spec.RevisionHistoryLimit, inUse) {
		if err := r.history.Delete(ctx, revision); err != nil {
			return err
		}
	}
	return nil
}
