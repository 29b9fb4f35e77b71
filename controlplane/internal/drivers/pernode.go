// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controlplane/nodes"
	"github.com/setpoint-io/setpoint/object"
)

// publishers is how many Nodes a PerNode works on at a time. The API server answers some 1,000 writes a second, and
// each takes it a few milliseconds.
const publishers = 16

// Published says how a driver describes a simulated Node in an object, such as a CSINode or a ResourceSlice.
type Published[T object.Object] struct {
	// Kind is the kind of the objects, for errors.
	Kind string

	// Name returns the name of the object of a Node, and NodeOf the Node of an object; ok is false if the object has
	// a name that belongs to no Node.
	Name   func(node string) string
	NodeOf func(name string) (node string, ok bool)

	// Want returns the object of a Node, and a sentence for each annotation that cannot be read.
	Want func(node *corev1.Node) (want T, problems []string)

	// Merge returns the object that replaces has, and false if nothing is to be written. It does not change has.
	Merge func(has, want T) (next T, differs bool)

	// Without returns what is left of an object whose Node is gone, and false if nothing of it is the driver's. If rest
	// is false, the object is deleted.
	Without func(has T) (next T, rest, ours bool)

	// Reason and Action are those of the Events about annotations that cannot be read.
	Reason, Action string
}

// PerNode keeps one object of a driver for each simulated Node: it creates the object, writes it when the labels or
// annotations of the Node change or another client has changed it, and withdraws it when the Node is gone. The garbage
// collector would delete it too, but a cluster may run without one.
type PerNode[T object.Object] struct {
	published Published[T]
	nodes     cache.SharedInformer[*corev1.Node]
	objects   cache.SharedInformer[T]
	recorder  *events.Recorder
	log       *slog.Logger
	reported  sync.Map // the problems of a Node's annotations that were reported, by the Node's key
}

// NewPerNode returns the keeper of the objects that published describes.
func NewPerNode[T object.Object](p cache.Provider, recorder *events.Recorder, log *slog.Logger, published Published[T]) *PerNode[T] {
	return &PerNode[T]{
		published: published, recorder: recorder, log: log,
		nodes: cache.Informer[*corev1.Node](p), objects: cache.Informer[T](p),
	}
}

// Loop returns what is to run. The heartbeats of a Node start no run.
func (k *PerNode[T]) Loop(name string) controller.Runnable {
	return controller.New(name, k.reconcile,
		controller.For(k.nodes, predicate.Either(predicate.LabelsChanged[*corev1.Node], predicate.AnnotationsChanged[*corev1.Node])),
		controller.Watches(k.objects, func(item cache.Item[T], add func(object.Key)) {
			if node, ok := k.published.NodeOf(item.Key().Name); ok {
				add(object.Key{Name: node})
			}
		}),
		controller.Workers(publishers), controller.Log(k.log),
	)
}

// How often CaughtUp looks into the caches, and how long at most.
const (
	catchUpInterval = 20 * time.Millisecond
	catchUpLimit    = 10 * time.Second
)

// CaughtUp waits until each simulated Node has its object, so that a cluster that is ready does not change any more by
// itself. An object that cannot be created delays that for a limited time. It reports false if ctx has ended.
func (k *PerNode[T]) CaughtUp(ctx context.Context) bool {
	if k.nodes.WaitForSync(ctx) != nil || k.objects.WaitForSync(ctx) != nil {
		return false
	}
	for end := time.Now().Add(catchUpLimit); !k.complete() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(catchUpInterval):
		}
	}
	return true
}

// complete reports whether each simulated Node has its object.
func (k *PerNode[T]) complete() bool {
	for _, item := range k.nodes.All() {
		node, err := item.Object()
		if err != nil || !IsSimulated(node) {
			continue
		}
		if _, err := k.objects.Get(object.Key{Name: k.published.Name(node.Name)}); err != nil {
			return false
		}
	}
	return true
}

// IsSimulated reports whether a Node is one of the simulation.
func IsSimulated(node *corev1.Node) bool { return node.Labels[nodes.ManagedLabel] == "true" }

// reconcile brings the object of one Node to its desired state.
func (k *PerNode[T]) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) { //nolint:unparam // the signature of a reconciler
	node, err := k.nodes.Get(req.Key)
	switch {
	case apierrors.IsNotFound(err):
		k.reported.Delete(req.Key)
		return controller.Result{}, k.withdraw(ctx, req.Key.Name)
	case err != nil:
		return controller.Result{}, err
	case !IsSimulated(node):
		return controller.Result{}, k.withdraw(ctx, node.Name)
	case node.DeletionTimestamp != nil:
		return controller.Result{}, nil
	}
	want, problems := k.published.Want(node)
	k.report(node, problems)
	return controller.Result{}, k.publish(ctx, want)
}

// publish creates the object of a Node, or writes it if it differs.
func (k *PerNode[T]) publish(ctx context.Context, want T) error {
	has, err := k.objects.Get(object.KeyOf(want))
	if apierrors.IsNotFound(err) {
		if _, err := k.objects.Create(ctx, want); err != nil {
			return fmt.Errorf("creating the %s of the node: %w", k.published.Kind, err)
		}
		return nil
	}
	if err != nil || has.GetDeletionTimestamp() != nil {
		return err // its end is an event
	}
	next, differs := k.published.Merge(has, want)
	if !differs {
		return nil
	}
	if _, err := k.objects.Update(ctx, next); err != nil {
		return fmt.Errorf("writing the %s of the node: %w", k.published.Kind, err)
	}
	return nil
}

// withdraw takes back what the driver says about a Node that is gone.
func (k *PerNode[T]) withdraw(ctx context.Context, node string) error {
	key := object.Key{Name: k.published.Name(node)}
	has, err := k.objects.Get(key)
	if err == nil && has.GetDeletionTimestamp() == nil {
		switch next, rest, ours := k.published.Without(has); {
		case !ours:
		case rest:
			_, err = k.objects.Update(ctx, next)
		default:
			err = k.objects.Delete(ctx, key, client.IfUID(has.GetUID()))
		}
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("withdrawing the %s of a node that is gone: %w", k.published.Kind, err)
	}
	return nil
}

// report says what is wrong with the annotations of a Node, once.
func (k *PerNode[T]) report(node *corev1.Node, problems []string) {
	all := strings.Join(problems, "\n")
	if before, _ := k.reported.Swap(object.KeyOf(node), all); before == all || all == "" {
		return
	}
	for _, problem := range problems {
		k.log.Warn("a Node has an annotation that cannot be simulated", "node", node.Name, "problem", problem)
		k.recorder.Warning(node, k.published.Reason, k.published.Action, "%s", problem)
	}
}
