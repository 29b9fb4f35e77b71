// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodettl

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "ttl-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Nodes are worked on at a time.
	Workers int
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		nodes: cache.Informer[*corev1.Node](h).With(client.MetadataAnswer()),
	}
	c := controller.New(Name, r.reconcile,
		controller.For(r.nodes, r.differs),
		controller.Workers(o.Workers),
	)
	r.attend = func(node object.Key) {
		c.Enqueue(workqueue.Add{Cause: workqueue.Cause{Source: Name, Verb: "ClusterResized"}}, node)
	}
	return c, nil
}

type reconciler struct {
	nodes  cache.SharedInformer[*corev1.Node]
	attend func(object.Key) // requests a run of a Node

	mu sync.Mutex
	at int // the number of the cluster's step
}

// want returns what the annotations should say now. If that changes, all Nodes are
// reconciled.
func (r *reconciler) want() int {
	nodes := r.nodes.Snapshot()
	r.mu.Lock()
	before := r.at
	r.at = next(before, nodes.Len())
	seconds, changed := steps[r.at].seconds, r.at != before
	r.mu.Unlock()
	if changed {
		for key := range nodes.All() {
			r.attend(key)
		}
	}
	return seconds
}

// has reports whether a Node's annotation says a number of seconds.
func has(item cache.Item[*corev1.Node], seconds int) (bool, error) {
	annotations, err := item.Annotations()
	if err != nil {
		return false, err
	}
	n, err := strconv.Atoi(annotations[corev1.ObjectTTLAnnotationKey])
	return err == nil && n == seconds, nil
}

// differs lets those events through whose Node has not the annotation that it should.
func (r *reconciler) differs(e cache.Event[*corev1.Node]) bool {
	want := r.want()
	if e.Kind == cache.Deleted {
		return false
	}
	as, err := has(e.New, want)
	return err != nil || !as // a run reports the error
}

// reconcile sets the annotation of one Node.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	item := r.nodes.Snapshot().Get(req.Key)
	if !item.Exists() {
		return controller.Result{}, nil
	}
	want := r.want()
	if as, err := has(item, want); err != nil || as {
		return controller.Result{}, err
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{
		"uid":         item.Meta().UID,
		"annotations": map[string]string{corev1.ObjectTTLAnnotationKey: strconv.Itoa(want)},
	}})
	if err != nil {
		return controller.Result{}, err
	}
	if _, err := r.nodes.Patch(ctx, req.Key, patch); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("annotating node %s: %w", req.Key, err)
	}
	return controller.Result{}, nil
}
