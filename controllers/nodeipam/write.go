// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// tries is how often a Node is written in one run.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam, cidrUpdateRetries.
const tries = 3

// write writes the ranges of a Node. The ranges stay reserved for the Node until the server says
// that the Node has others or is gone: a write without an answer may still be carried out.
func (r *reconciler) write(ctx context.Context, node *corev1.Node, ranges []netip.Prefix) error {
	err := r.patch(ctx, node, ranges)
	if err == nil {
		r.log.Info("gave a node the ranges of its pods", "node", node.Name, "ranges", list(ranges))
		return nil
	}
	live, getErr := r.nodes.Server().Get(ctx, object.KeyOf(node))
	switch {
	case apierrors.IsNotFound(getErr) || getErr == nil && live.UID != node.UID:
		r.freed(r.book.release(node.Name))
		return nil // a Node of the name that is new has a run of its own
	case getErr != nil:
		because(ctx, codeNotAnswered, "whether the Node has {ranges} is not known: {error}", "the API server answers", "ranges", list(ranges), "error", getErr)
		return fmt.Errorf("reading node %s, to which %s could not be given (%w): %w", node.Name, list(ranges), err, getErr)
	case len(textsOf(live)) > 0: // ours, if an answer was lost, or those of another process
		r.keep(ctx, live)
		return nil
	}
	r.status(node, reasonAssignmentFailed, err)
	return fmt.Errorf("giving node %s %s: %w", node.Name, list(ranges), err)
}

// patch sets the ranges of a Node, if it has none. The API server refuses to change ranges that
// a Node has.
func (r *reconciler) patch(ctx context.Context, node *corev1.Node, ranges []netip.Prefix) (err error) {
	texts := make([]string, 0, len(ranges))
	for _, each := range ranges {
		texts = append(texts, each.String())
	}
	change, err := client.MergePatch(map[string]any{
		"metadata": map[string]any{"uid": node.UID},
		"spec":     map[string]any{"podCIDR": texts[0], "podCIDRs": texts},
	})
	if err != nil {
		return err
	}
	for range tries {
		if _, err = r.nodes.Patch(ctx, object.KeyOf(node), change); err == nil || decided(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// decided reports whether a write is refused as long as the Node is as it is.
func decided(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}
