// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/controller/status"
	"github.com/setpoint-io/setpoint/object"
)

// carryOut takes the steps of a plan until one fails, and returns what it did.
func (r *reconciler) carryOut(ctx context.Context, set *appsv1.StatefulSet, p *plan) (outcome, error) {
	owner := podwriter.Owner{Object: set, Kind: kind}
	done := outcome{gone: map[types.UID]bool{}}
	deleted, err := r.writer.Delete(ctx, owner, p.restart)
	if done.note(p.restart, deleted); err != nil {
		return done, err
	}
	if done.created, err = r.writer.Create(ctx, owner, p.create, func(string) bool { return false }); err != nil {
		return done, err
	}
	if err := r.writeClaims(ctx, set, p.claims); err != nil {
		return done, err
	}
	if err := r.relabel(ctx, set, p.relabel); err != nil {
		return done, err
	}
	deleted, err = r.writer.DeleteUnchanged(ctx, owner, p.broken)
	done.kept = slices.Contains(deleted, false)
	done.note(p.broken, deleted)
	if pod := p.neverReady; pod != nil && done.gone[pod.UID] {
		r.recorder.Normal(set, replacingNeverReady, deciding, "Pod %s has never been ready and has an old template; the rollout replaces it", pod.Name)
	}
	if err != nil {
		return done, err
	}
	deleted, err = r.writer.Delete(ctx, owner, p.delete)
	done.note(p.delete, deleted)
	return done, err
}

// note notes which Pods are deleted.
func (o *outcome) note(pods []*corev1.Pod, deleted []bool) {
	for i, pod := range pods {
		if deleted[i] {
			o.gone[pod.UID] = true
		}
	}
}

// createClaims creates the claims of a Pod that is about to be created. A Pod of which a claim is
// missing would stay Pending.
func (r *reconciler) createClaims(ctx context.Context, owner podwriter.Owner, pod *corev1.Pod) error {
	set := owner.Object.(*appsv1.StatefulSet)
	snapshot := r.claims.Snapshot()
	var failures []error
	for _, claim := range newClaims(set, ordinalOf(pod)) {
		if shown(snapshot, set.Namespace, claim.Name) == nil {
			failures = append(failures, r.createClaim(ctx, set, pod, claim))
		}
	}
	return errors.Join(failures...)
}

// createClaim creates a claim. One that the informer has not shown yet is as good, unless it is
// being deleted.
func (r *reconciler) createClaim(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) error {
	_, err := r.claims.Create(ctx, claim)
	switch {
	case err == nil:
		r.recorder.Normal(set, successfulCreate, "CreateClaim", "%s", claimDone(claim.Name, pod.Name, set.Name))
		return nil
	case apierrors.IsAlreadyExists(err):
		there, err := r.claims.Server().Get(ctx, object.KeyOf(claim))
		if err != nil {
			return fmt.Errorf("failed to retrieve PVC %s: %w", claim.Name, err)
		}
		if there.DeletionTimestamp != nil {
			return fmt.Errorf("pvc %s is being deleted", claim.Name)
		}
		return nil
	case client.NamespaceGone(err), ctx.Err() != nil:
	default:
		r.recorder.Warning(set, failedCreate, "CreateClaim", "%s", claimFailed(claim.Name, pod.Name, set.Name, err))
	}
	return fmt.Errorf("failed to create PVC %s: %w", claim.Name, err)
}

// writeClaims creates the claims that Pods lack, and writes the owners that others are to have.
// They are written before Pods are deleted: a claim that goes with its Pod has to refer to it.
func (r *reconciler) writeClaims(ctx context.Context, set *appsv1.StatefulSet, changes []claimChange) error {
	_, err := owned.SlowStart(ctx, len(changes), 1, func(ctx context.Context, i int) error {
		change := changes[i]
		if change.create {
			return r.createClaim(ctx, set, change.pod, change.claim)
		}
		_, err := r.claims.Update(ctx, change.claim)
		switch {
		case err == nil, client.AbsentAt(err, object.KeyOf(change.claim)):
			return nil
		case ctx.Err() == nil && !apierrors.IsConflict(err):
			r.recorder.Warning(set, failedUpdate, "UpdateClaim", "%s", podFailed("Update", change.pod.Name, set.Name, err))
		}
		return fmt.Errorf("could not update claim %s for delete policy ownerRefs: %w", change.claim.Name, err)
	})
	if client.NamespaceGone(err) {
		return nil
	}
	return err
}

// relabel gives members the labels of their identity.
func (r *reconciler) relabel(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod) error {
	_, err := owned.SlowStart(ctx, len(pods), 1, func(ctx context.Context, i int) error {
		pod := pods[i]
		patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{
			"uid": pod.UID, "labels": identity(pod.Name, ordinalOf(pod)),
		}})
		if err != nil {
			return err
		}
		_, err = r.pods.Patch(ctx, object.KeyOf(pod), patch, client.MetadataAnswer())
		switch {
		case err == nil:
			r.recorder.Normal(set, successfulUpdate, "UpdatePod", "%s", podDone("Update", pod.Name, set.Name))
			return nil
		case client.AbsentAt(err, object.KeyOf(pod)), apierrors.IsConflict(err):
			return nil // another Pod has its name
		case ctx.Err() == nil:
			r.recorder.Warning(set, failedUpdate, "UpdatePod", "%s", podFailed("Update", pod.Name, set.Name, err))
		}
		return fmt.Errorf("labelling Pod %s: %w", object.KeyOf(pod), err)
	})
	return err
}

// writeStatus writes a status that has changed. conflict is true if the StatefulSet has changed
// meanwhile: the next run computes the status of that state.
func (r *reconciler) writeStatus(ctx context.Context, set *appsv1.StatefulSet, now appsv1.StatefulSetStatus) (conflict bool, err error) {
	next := *set
	next.Status = now
	err = status.Write(ctx, r.sets, set, &next)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil // it was deleted meanwhile
	case apierrors.IsConflict(err):
		return true, nil
	}
	return false, err
}
