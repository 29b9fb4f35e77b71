// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "node-lifecycle-controller"

// workers is upstream's nodeUpdateWorkerSize.
const workers = 8

// Options changes how the controller works. The zero value is upstream's choice.
type Options struct {
	// Workers is how many Nodes are worked on at a time. 0 is 8.
	Workers int
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if o.Workers < 0 {
		return nil, fmt.Errorf("making %s: %d workers; give 1 or more, or 0 for the default", Name, o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = workers
	}
	nodes := cache.Informer[*corev1.Node](h)
	r := &reconciler{nodes: nodes, writer: client.For[*corev1.Node](h.Client())}
	return controller.New(Name, r.reconcile,
		controller.For(nodes, notAsItShouldBe),
		controller.Workers(o.Workers),
		controller.Client(h.Client()),
		controller.Log(h.Logger()),
	), nil
}

// notAsItShouldBe lets those events through whose node has something to be done
// about, whatever has changed: most events are heartbeats.
func notAsItShouldBe(e cache.Event[*corev1.Node]) bool {
	if e.Kind == cache.Deleted {
		return false
	}
	node, err := e.New.Object()
	if err != nil {
		return true // a run reports it
	}
	_, differ := taintsOf(node, time.Time{})
	return differ || labelsToSet(node.Labels) != nil
}

type reconciler struct {
	nodes  cache.SharedInformer[*corev1.Node]
	writer client.Typed[*corev1.Node]
}

// reconcile gives a node the taints and labels that its state calls for.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	node, err := r.nodes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	taints, differ := taintsOf(node, time.Now())
	labels := labelsToSet(node.Labels)
	if !differ && labels == nil {
		return controller.Result{}, nil
	}
	patch, err := change(node, taints, differ, labels)
	if err != nil {
		return controller.Result{}, err
	}
	_, err = r.writer.Patch(ctx, object.KeyOf(node), patch)
	if err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("setting taints and labels of node %s: %w", node.Name, err)
	}
	return controller.Result{}, nil
}

// change returns the patch that gives this state of the node other labels and, if
// they differ, other taints.
func change(node *corev1.Node, taints []corev1.Taint, differ bool, labels map[string]string) (client.Patch, error) {
	metadata := map[string]any{"uid": node.UID}
	if labels != nil {
		metadata["labels"] = labels
	}
	whole := map[string]any{"metadata": metadata}
	if differ {
		// Taints have no merge key: the list is replaced, and whatever somebody
		// else has put into it meanwhile would be lost.
		metadata["resourceVersion"] = node.ResourceVersion
		whole["spec"] = map[string]any{"taints": taints}
		if len(taints) == 0 {
			whole["spec"] = map[string]any{"taints": nil}
		}
	}
	return client.MergePatch(whole)
}
