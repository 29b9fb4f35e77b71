// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// claimed is the Pods of an owner.
type claimed struct {
	// active are the Pods that count, shared and read-only; the slice is our own. They may have no spec: see demand.first.
	active      []*corev1.Pod
	terminating int // being deleted, not ended yet
	// kept reports that a Pod that was to be deleted has changed meanwhile, and stays until another
	// run decides about it.
	kept bool
}

// claim finds the Pods of an owner. It adopts active Pods that match and have no
// manager, and releases active ones that match no longer. Pods that are not active
// stay whose they are.
func (k *keeper) claim(ctx context.Context, snapshot cache.Snapshot[*corev1.Pod], d *demand) (claimed, error) {
	var mine claimed
	var undecided []cache.Item[*corev1.Pod]
	read := cache.Item[*corev1.Pod].Object
	if d.first {
		read = statusOf
	}
	for _, item := range snapshot.ControlledBy(d.key.Namespace, d.owner.GetUID()) {
		pod, err := read(item)
		if err != nil {
			return claimed{}, err // a Pod that is not counted would be made again
		}
		matches := d.Selector.Matches(labels.Set(pod.Labels))
		switch {
		case podstate.Active(pod) && matches:
			mine.active = append(mine.active, pod)
		case podstate.Active(pod):
			undecided = append(undecided, item)
		case podstate.Terminating(pod) && matches:
			mine.terminating++
		}
	}
	if !d.deleting() {
		for _, item := range k.orphans.Selected(snapshot, d.key.Namespace, d.Selector) {
			pod, err := item.Object()
			if err != nil {
				return claimed{}, err
			}
			if podstate.Active(pod) {
				undecided = append(undecided, item)
			}
		}
	}
	if len(undecided) == 0 {
		return mine, nil
	}
	claim := owned.Claim[*corev1.Pod]{
		Server: k.pods.Server(), Owner: d.owner, Kind: d.kind.GroupVersionKind(), Selector: d.Selector, Live: d.live,
	}
	adopted, err := claim.Of(ctx, seq(undecided))
	if err != nil {
		return claimed{}, err
	}
	for _, item := range adopted {
		pod, err := item.Object()
		if err != nil {
			return claimed{}, err
		}
		mine.active = append(mine.active, pod)
	}
	return mine, nil
}

// statusOf decodes a Pod without its spec, which is most of it: to decode all Pods whole was 12 % of the CPU of a start beside 50,000 of them. Nothing
// is kept of what it decodes, so it is for a run that no other follows soon.
func statusOf(item cache.Item[*corev1.Pod]) (*corev1.Pod, error) { return item.Without(wire.Spec) }

// whole returns the Pods with their specs. The snapshot is the one that they are from.
func (c claimed) whole(snapshot cache.Snapshot[*corev1.Pod]) (claimed, error) {
	active := make([]*corev1.Pod, len(c.active))
	for i, pod := range c.active {
		var err error
		if active[i], err = snapshot.Get(object.KeyOf(pod)).Object(); err != nil {
			return claimed{}, err
		}
	}
	c.active = active
	return c, nil
}

// seq hands out items as an index does.
func seq(items []cache.Item[*corev1.Pod]) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	return func(yield func(object.Key, cache.Item[*corev1.Pod]) bool) {
		for _, item := range items {
			if !yield(item.Key(), item) {
				return
			}
		}
	}
}
