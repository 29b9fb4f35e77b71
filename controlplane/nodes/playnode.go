// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// heartbeat is the Lease of a Node as it was last seen, and when it was renewed.
type heartbeat struct {
	lease   *coordinationv1.Lease
	renewed time.Time
}

// playNode keeps the status and the Lease of a Node fresh, and returns when to
// look again.
func (s *simulation) playNode(ctx context.Context, name string) (wake time.Time, err error) {
	state, node, ok := s.store.node(name)
	if !ok {
		return time.Time{}, nil
	}
	quiet, problem := silent(node)
	if problem != state.reported {
		if state.reported = problem; problem != "" {
			s.log.Warn("a Node has an annotation that cannot be simulated", "node", name, "problem", problem)
			s.event(ctx, reference("Node", node), podEvent{corev1.EventTypeWarning, "InvalidSimulation", problem})
		}
	}
	if quiet {
		state.heartbeat.renewed = time.Time{} // to be renewed at once when it is back
		return time.Time{}, nil
	}

	if node, err = s.announce(ctx, state, node); err != nil {
		return time.Time{}, err
	}
	wake, played, err := s.stages.playNode(ctx, state, node)
	if err != nil {
		return time.Time{}, err
	}
	if !played {
		if wake, err = s.report(ctx, state, node); err != nil {
			return time.Time{}, err
		}
	}
	beat, err := s.renew(ctx, state, node)
	if err != nil {
		return time.Time{}, fmt.Errorf("renewing the lease: %w", err)
	}
	if !state.ready {
		state.ready = true
		if s.waiting.Add(-1) == 0 {
			s.OnReady()
		}
	}
	if wake.IsZero() || beat.Before(wake) {
		wake = beat
	}
	return wake, nil
}

// report writes the status of a Node if it has to, and returns when it next must.
func (s *simulation) report(ctx context.Context, state *nodeState, node *corev1.Node) (time.Time, error) {
	now := time.Now()
	status := nodeStatus(node, s.Options, s.about, now)
	if status == nil {
		return lastHeartbeat(node).Add(statusReport), nil
	}
	write := *node
	write.Status = *status
	api := s.client.CoreV1().Nodes()
	result, err := api.UpdateStatus(ctx, &write, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		live, err := api.Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the node after a conflict: %w", err)
		}
		if simulated(live) {
			s.store.putNode(live)
		}
		return now, nil
	}
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil // the watch will show it
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("writing the node's status: %w", err)
	}
	result.ManagedFields = nil
	s.store.updateNode(state, result)
	return now.Add(statusReport), nil
}

// renew renews the Lease when it is due, and returns when it next is.
func (s *simulation) renew(ctx context.Context, state *nodeState, node *corev1.Node) (time.Time, error) {
	beat := &state.heartbeat
	now := time.Now()
	if due := beat.renewed.Add(leaseRenewal); now.Before(due) {
		return due, nil
	}
	api := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	want := coordinationv1.LeaseSpec{
		HolderIdentity:       new(node.Name),
		LeaseDurationSeconds: new(int32(leaseDuration / time.Second)),
		RenewTime:            new(metav1.NewMicroTime(now)),
	}
	if beat.lease == nil {
		lease, err := api.Get(ctx, node.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			lease, err = api.Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
				}}},
				Spec: want,
			}, metav1.CreateOptions{})
			if err == nil {
				beat.lease, beat.renewed = lease, now
				return now.Add(leaseRenewal), nil
			}
		}
		if err != nil {
			return time.Time{}, err
		}
		beat.lease = lease
	}
	write := beat.lease.DeepCopy()
	write.Spec = want
	lease, err := api.Update(ctx, write, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		beat.lease = nil // read it again
	}
	if err != nil {
		return time.Time{}, err
	}
	beat.lease, beat.renewed = lease, now
	return now.Add(leaseRenewal), nil
}
