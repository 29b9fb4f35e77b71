// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/object"
)

// Demand is what an owner wants: a number of Pods that are made from one template. All of
// it is read-only.
type Demand struct {
	Replicas int
	MinReady time.Duration // how long a Pod must have been ready to be available
	Selector labels.Selector
	Template *corev1.PodTemplateSpec
}

// demand is a Demand with its owner.
type demand struct {
	Demand
	key   object.Key
	owner object.Object
	kind  object.Resource // of the owner
	// live reads the owner from the server.
	live func(context.Context) (object.Object, error)
	// siblings returns the UIDs of all who share the owner's owner, the owner
	// among them.
	siblings func() []types.UID
	// first is set in the first run for an owner that seems to have what it wants. Its Pods are read without their specs.
	first bool
}

// deleting reports whether the owner is being deleted.
func (d *demand) deleting() bool { return d.owner.GetDeletionTimestamp() != nil }

// keeper creates and deletes Pods by demands. It is safe for concurrent use by runs for
// different keys.
type keeper struct {
	pods    cache.SharedInformer[*corev1.Pod]
	orphans *selectors.Labelled[*corev1.Pod]
	writer  *podwriter.Writer
	burst   int
	now     func() time.Time

	met                met
	ignoreDeletionCost bool
	ageRatio           func(float64) // may be nil: see Kind.AgeRatio
}

// state is what a run has left.
type state struct {
	counts
	failure   *failure      // of creating or deleting; nil if all went well
	nextCheck time.Duration // until a Pod becomes available; 0 if none waits for that
	at        time.Time     // when it was counted
	again     bool          // the next run decides anew which Pods to delete
}

// forget drops what is remembered for a key without a demand.
func (k *keeper) forget(key object.Key) {
	k.writer.Forget(key)
	k.met.forget(key)
}

// keep makes one demand true. The error says that it could not be found out which
// Pods there are, or that not all could be adopted or released; nothing was created
// or deleted then.
func (k *keeper) keep(ctx context.Context, d demand) (state, error) {
	snapshot := k.pods.Snapshot()
	mine, err := k.claim(ctx, snapshot, &d)
	if err == nil && d.first && plan(d.Replicas, len(mine.active), k.burst) < 0 {
		mine, err = mine.whole(snapshot) // which of them are deleted depends on their nodes
	}
	if err != nil {
		return state{}, err
	}
	var failed *failure
	if !d.deleting() {
		mine, failed = k.scale(ctx, snapshot, &d, mine)
	}
	for _, reason := range reasons(mine.active) {
		controller.Because(ctx, reason)
	}
	now := k.now()
	counted, next := count(mine, d.Template.Labels, d.MinReady, now)
	return state{counts: counted, failure: failed, nextCheck: next, at: now, again: mine.kept}, nil
}

// whose is the owner as that of Pods.
func (d *demand) whose() podwriter.Owner { return podwriter.Owner{Object: d.owner, Kind: d.kind} }
