// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/eviction"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "taint-eviction-controller"

// What the condition of a Pod that goes says, and the reason of Events. People and
// tools match on them.
// Source: k8s.io/kubernetes/pkg/controller/tainteviction, taint_eviction.go.
const (
	conditionReason  = "DeletionByTaintManager"
	conditionMessage = "Taint manager: deleting due to NoExecute taint"
	eventReason      = "TaintManagerEviction"
)

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Pods are worked on at a time.
	Workers int
}

// New returns the controller, built on h, which runs it. It is a prometheus.Collector as well.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	metrics := &controllers.Metrics{}
	r := &reconciler{
		pods:      cache.Informer[*corev1.Pod](h).With(client.MetadataAnswer()),
		nodes:     cache.Informer[*corev1.Node](h),
		events:    h.Recorder(Name),
		deletions: eviction.DeletionsOf(metrics, "taint_eviction_controller"),
	}
	r.onNode = cache.TextIndex(r.pods, wire.NodeName)
	r.tainted = cache.NewIndex(r.nodes, func(item cache.Item[*corev1.Node]) ([]string, error) {
		node, err := item.Object()
		if err != nil || len(noExecute(node)) == 0 {
			return nil, err
		}
		return []string{""}, nil
	})
	return metrics.Of(controller.New(Name, r.reconcile,
		controller.For(r.pods, r.concerns),
		controller.Watches(r.nodes, r.podsOf, taintsChanged),
		controller.Workers(o.Workers),
	)), nil
}

type reconciler struct {
	pods    cache.SharedInformer[*corev1.Pod]
	nodes   cache.SharedInformer[*corev1.Node]
	onNode  cache.Index[*corev1.Pod]  // by the name of the node
	tainted cache.Index[*corev1.Node] // those with a NoExecute taint, under one value
	events  *events.Recorder
	clocks  clocks

	deletions *eviction.Deletions
}

// taints returns the NoExecute taints of a node. A node that is not known has none.
func (r *reconciler) taints(node string) []corev1.Taint {
	o, err := r.nodes.Get(object.Key{Name: node})
	if err != nil {
		return nil
	}
	return noExecute(o)
}

// anyTainted reports whether a node has a NoExecute taint.
func (r *reconciler) anyTainted() bool {
	for range r.tainted.Find("") {
		return true
	}
	return false
}

// concerns lets those events through after which a Pod may have to go, or may stay.
func (r *reconciler) concerns(e cache.Event[*corev1.Pod]) bool {
	if r.clocks.runs(e.Key()) {
		return e.Kind != cache.Updated || e.New.Meta().Deleting() || moved(e)
	}
	if e.Kind == cache.Deleted || !r.anyTainted() {
		return false
	}
	node, err := e.New.Text(wire.NodeName)
	if err == nil && len(r.taints(node)) == 0 {
		return false
	}
	return e.Kind != cache.Updated || moved(e) // a run reports the error
}

// moved reports whether a Pod was bound, or its tolerations have changed.
func moved(e cache.Event[*corev1.Pod]) bool {
	before, err := e.Old.Object()
	if err != nil {
		return true
	}
	now, err := e.New.Object()
	if err != nil {
		return true
	}
	return before.Spec.NodeName != now.Spec.NodeName || !equality.Semantic.DeepEqual(before.Spec.Tolerations, now.Spec.Tolerations)
}

// podsOf adds the Pods of a node.
func (r *reconciler) podsOf(node cache.Item[*corev1.Node], add func(object.Key)) {
	for key := range r.onNode.Find(node.Key().Name) {
		add(key)
	}
}

// taintsChanged chooses nodes whose NoExecute taints are not as they were.
func taintsChanged(e cache.Event[*corev1.Node]) bool {
	return !slices.EqualFunc(taintsOf(e.Old), taintsOf(e.New), func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Value == b.Value })
}

func taintsOf(item cache.Item[*corev1.Node]) []corev1.Taint {
	if !item.Exists() {
		return nil
	}
	node, err := item.Object()
	if err != nil {
		return nil // the informer has reported it
	}
	return noExecute(node)
}

// reconcile has one Pod go if its time is up.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := r.pods.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.clocks.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if pod.DeletionTimestamp != nil {
		r.clocks.forget(req.Key)
		return controller.Result{}, nil
	}
	now := time.Now()
	deadline, bounded, stopped := r.clocks.look(pod, r.taints(pod.Spec.NodeName), now)
	if stopped {
		r.events.Normal(pod, eventReason, "CancelEviction", "Cancelling deletion of Pod %s", req.Key)
	}
	if !bounded {
		return controller.Result{}, nil
	}
	if left := deadline.Sub(now); left > 0 {
		controller.Because(ctx, controller.Reason{Code: "TaintTolerated", Text: "the Pod tolerates the taints of node {node} until {time}",
			Params: controller.With("node", pod.Spec.NodeName, "time", deadline.UTC().Format(time.RFC3339)), Ends: "that time, or a change of the taints or the tolerations"})
		return controller.Result{After: left}, nil
	}
	controller.Because(ctx, controller.Reason{Code: "TaintNotTolerated", Text: "the Pod does not tolerate the taint {taint} of Node {node}, or no longer",
		Params: controller.With("taint", firstUntolerated(pod.Spec.Tolerations, r.taints(pod.Spec.NodeName)), "node", pod.Spec.NodeName), Ends: "the Pod is gone"})
	return controller.Result{}, r.evict(ctx, pod, deadline)
}

// evict says why a Pod goes, and deletes it. Its time was up at the deadline.
func (r *reconciler) evict(ctx context.Context, pod *corev1.Pod, deadline time.Time) error {
	evicted, err := eviction.Evict(ctx, r.pods, pod, eviction.Cause{Reason: conditionReason, Message: conditionMessage})
	if err != nil {
		return fmt.Errorf("evicting a Pod that does not tolerate a taint of node %s: %w", pod.Spec.NodeName, err)
	}
	if evicted {
		r.deletions.Add(deadline)
		r.events.Normal(pod, eventReason, "Evict", "Marking for deletion Pod %s", object.KeyOf(pod))
	}
	return nil
}
