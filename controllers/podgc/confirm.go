// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// confirm asks the server, right before a Pod is removed, whether a reason that lies with its
// node still holds. A removal cannot be taken back, the informer of nodes may lag, and a Pod
// whose node works again may still be writing to its volumes.
//
// A reason in the Pod itself needs no confirmation. A Pod that is being deleted stays so, is
// bound to no node any more and to no other, and one that has ended does not run again; the
// writes carry its UID, so that they can only meet the Pod that was judged.
func (r *reconciler) confirm(ctx context.Context, pod *corev1.Pod, v view, why reason) (holds bool, err error) {
	if why != outOfService && why != orphaned {
		return true, nil
	}
	key := object.Key{Name: pod.Spec.NodeName}
	node, err := r.nodes.Server().Get(ctx, key)
	switch {
	case client.AbsentAt(err, key):
		// A Pod whose node is gone is an orphan, and goes after the quarantine.
		holds = why == orphaned
	case err != nil:
		return false, fmt.Errorf("reading node %s before pod %s is removed, because %s: %w", pod.Spec.NodeName, object.KeyOf(pod), why, err)
	default:
		holds = why == outOfService && node.UID == v.node.UID && isOutOfService(node)
	}
	if !holds {
		r.log.Info("a Pod stays: the informer of nodes lags behind the server about its node", "object", object.KeyOf(pod).String(), "node", pod.Spec.NodeName, "reason", string(why))
	}
	return holds, nil
}
