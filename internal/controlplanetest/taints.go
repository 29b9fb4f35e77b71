// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// untaint makes the nodes schedulable. New nodes have the taint not-ready, which neither the
// server nor a kubelet removes.
func (c *Cluster) untaint(ctx context.Context) error {
	nodes := client.For[*corev1.Node](c.Client)
	for i := range c.options.Nodes {
		key := object.Key{Name: fmt.Sprintf("node-%d", i)}
		for {
			node, err := nodes.Get(ctx, key)
			if err != nil {
				return fmt.Errorf("removing the taint of %s: %w", key.Name, err)
			}
			node = node.DeepCopy()
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == corev1.TaintNodeNotReady
			})
			_, err = nodes.Update(ctx, node)
			if apierrors.IsConflict(err) {
				continue // the simulated kubelet has written its status meanwhile
			}
			if err != nil {
				return fmt.Errorf("removing the taint of %s: %w", key.Name, err)
			}
			break
		}
	}
	return nil
}
