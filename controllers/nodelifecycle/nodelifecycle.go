// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "node-lifecycle-controller"

// source is whom events name, which users filter by. It is older than Name.
const source = "node-controller"

// cluster is the key of the check of all nodes.
type cluster struct{}

// String says it to people.
func (cluster) String() string { return "the cluster" }

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		nodes:   cache.Informer[*corev1.Node](h),
		leases:  cache.Informer[*coordinationv1.Lease](h, cache.InNamespace(corev1.NamespaceNodeLease), cache.Gathers(controllers.HeartbeatsGather)),
		pods:    cache.Informer[*corev1.Pod](h).With(client.MetadataAnswer()),
		events:  h.Recorder(source),
		log:     h.Logger().With("controller", Name),
		monitor: newMonitor(o),
		seen:    seen{sightings: map[string]sighting{}},
		counts:  newCounts(),

		trustLeases: o.TrustCachedLeases,
	}
	r.onNode = cache.TextIndex(r.pods, wire.NodeName)
	nodes := controller.New(Name, r.reconcile,
		controller.For(r.nodes, r.notAsItShouldBe),
		controller.Watches(r.pods, r.unknownNodeOfPod, newlyBound),
		controller.Reads(r.leases),
		controller.Workers(o.Workers),
	)
	r.attend = func(node string) {
		nodes.Queue().AddWith(workqueue.Add{Cause: workqueue.Cause{Source: Name, Verb: workqueue.Timer}}, object.Key{Name: node})
	}
	look := controller.NewKeyed(Name+"-look", func(context.Context, controller.RequestOf[cluster]) (controller.Result, error) {
		return controller.Result{After: r.look(time.Now())}, nil
	}, controller.Reads(r.nodes), controller.Reads(r.leases), controller.Reads(r.pods))
	look.Queue().Add(cluster{})
	return r.counts.Of(controller.Join(Name, nodes, look)), nil
}

type reconciler struct {
	nodes   cache.SharedInformer[*corev1.Node]
	leases  cache.SharedInformer[*coordinationv1.Lease]
	pods    cache.SharedInformer[*corev1.Pod]
	onNode  cache.Index[*corev1.Pod] // by the name of the node
	events  *events.Recorder
	log     *slog.Logger
	monitor *monitor
	attend  func(node string) // requests a run of a node
	seen    seen              // at the last look, of which there is one at a time
	counts  *counts

	trustLeases bool // those in the cache, without a read from the server
	behind      behind
}

// seen is what there was to be seen of all nodes, and where it was read. Most of it is
// the same at the next check: reading each of a thousand nodes again was a third of the
// controller's CPU time while only heartbeats arrived.
type seen struct {
	nodes     cache.Snapshot[*corev1.Node]
	leases    cache.Snapshot[*coordinationv1.Lease]
	sightings map[string]sighting
}

// notAsItShouldBe lets those events through whose node has something to be done
// about, whatever has changed: most events are heartbeats.
func (r *reconciler) notAsItShouldBe(e cache.Event[*corev1.Node]) bool {
	if e.Kind == cache.Deleted {
		return false
	}
	node, err := e.New.Object()
	if err != nil {
		return true // a run reports it
	}
	return r.differs(node) || becomesUnknown(e, node)
}

// becomesUnknown reports whether a node is Unknown and was not before, as far as the process knows: it may have Pods to be marked.
// A process that stood by may see it so after another one has tainted the node and before that one has marked the Pods.
func becomesUnknown(e cache.Event[*corev1.Node], node *corev1.Node) bool {
	if readyStatus(node) != corev1.ConditionUnknown {
		return false
	}
	if e.Kind != cache.Updated {
		return true
	}
	before, err := e.Old.Object()
	return err != nil || readyStatus(before) != corev1.ConditionUnknown
}

// differs reports whether a node's taints or labels are not as they should be by now.
func (r *reconciler) differs(node *corev1.Node) bool {
	_, differ := taintsOf(node, r.monitor.mode(node.Name), time.Time{})
	return differ || labelsToSet(node.Labels) != nil
}

// unknownNodeOfPod adds the node that a Pod is bound to if the node is silent: no other
// component will set the Pod not ready.
func (r *reconciler) unknownNodeOfPod(pod cache.Item[*corev1.Pod], add func(object.Key)) {
	// A text that cannot be read is taken for none: its Pod cannot be decoded either.
	name, err := pod.Text(wire.NodeName)
	if err != nil || name == "" {
		return
	}
	key := object.Key{Name: name}
	if node, err := r.nodes.Get(key); err == nil && readyStatus(node) == corev1.ConditionUnknown {
		add(key)
	}
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	start := time.Now()
	err := r.node(ctx, req.Key)
	r.counts.one.Observe(time.Since(start).Seconds())
	return controller.Result{}, err
}

// look checks all nodes and enqueues those that need a run. It returns when to look
// again.
func (r *reconciler) look(now time.Time) time.Duration {
	// Without a connection no heartbeat arrives, and nothing can be written. The monitor
	// notices that it was not called for a while.
	if r.nodes.Trouble() != nil || r.leases.Trouble() != nil {
		return r.monitor.options.NodeMonitorPeriod
	}
	judge := !r.waits(now) // read first: what is observed afterwards is new enough
	f := r.monitor.look(r.sightings(), judge, now)
	r.counts.looked(f.zones, time.Since(now))
	for _, n := range f.gone {
		r.events.Normal(n.object(), "RemovingNode", "Remove", "Node %s event: Removing Node %s from Controller", n.name, n.name)
	}
	for _, n := range f.appeared {
		r.events.Normal(n.object(), "RegisteredNode", "Register", "Node %s event: Registered Node %s in Controller", n.name, n.name)
	}
	for _, name := range f.attention {
		r.attend(name)
	}
	if f.changed {
		if f.allDown {
			r.log.Warn("no node is ready: NoExecute taints are lifted until one is")
		} else {
			r.log.Warn("some nodes are ready again: NoExecute taints are set again")
		}
		// The verdict on every node is new, and calls for something to be done about few.
		for key, item := range r.nodes.All() {
			if node, err := item.Object(); err != nil || r.differs(node) {
				r.attend(key.Name)
			}
		}
	}
	return f.again
}

// sightings returns what is observed of all nodes.
func (r *reconciler) sightings() iter.Seq[sighting] {
	nodes, leases := r.nodes.Snapshot(), r.leases.Snapshot()
	for was, is := range nodes.Since(r.seen.nodes) {
		if !is.Exists() {
			delete(r.seen.sightings, was.Key().Name)
			continue
		}
		name := is.Key().Name
		node, err := is.Object()
		if err != nil {
			delete(r.seen.sightings, name)
			r.log.Error("a node cannot be read; its health is not watched", "object", name, "error", err)
			continue
		}
		r.seen.sightings[name] = see(node, read(leases.Get(leaseOf(name))))
	}
	for was, is := range leases.Since(r.seen.leases) {
		lease := is
		if !is.Exists() {
			lease = was
		}
		name := lease.Key().Name
		if s, ok := r.seen.sightings[name]; ok {
			s.renewed = renewed(read(is))
			r.seen.sightings[name] = s
		}
	}
	r.seen.nodes, r.seen.leases = nodes, leases
	return maps.Values(r.seen.sightings)
}

// read returns a Lease, or nil where the node keeps none, or one that cannot be read and
// says nothing: its status counts alone.
func read(item cache.Item[*coordinationv1.Lease]) *coordinationv1.Lease {
	lease, err := item.Object()
	if err != nil {
		return nil
	}
	return lease
}

func leaseOf(node string) object.Key {
	return object.Key{Namespace: corev1.NamespaceNodeLease, Name: node}
}

func (n nodeID) object() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, UID: n.uid}}
}

// node brings one node to where its state, and the monitor's verdict, call for.
func (r *reconciler) node(ctx context.Context, key object.Key) error {
	node, err := r.nodes.Get(key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	lease := r.leases.Snapshot().Get(leaseOf(node.Name))
	verdict := r.monitor.on(see(node, read(lease)), now)
	var doubt error
	if verdict.silent && !allUnknown(node) {
		verdict.silent, doubt = r.confirm(ctx, node, lease, now)
	}
	if verdict.silent {
		node, err = r.turnUnknown(ctx, node, now)
	}
	if err == nil {
		// A node that may be silent does not delay what is done in any case.
		r.because(ctx, node, verdict.noExecute)
		err = errors.Join(r.setTaintsAndLabels(ctx, node, verdict.noExecute, now), doubt)
	}
	if apierrors.IsNotFound(err) {
		return nil // it went meanwhile
	}
	if err != nil {
		return err
	}
	if readyStatus(node) == corev1.ConditionUnknown {
		return r.markPods(ctx, node.Name)
	}
	return nil
}

// turnUnknown writes the status Unknown into the conditions of a silent node, and returns
// the node as written.
func (r *reconciler) turnUnknown(ctx context.Context, node *corev1.Node, now time.Time) (*corev1.Node, error) {
	conditions := conditionsToTurn(node, now)
	if len(conditions) == 0 {
		return node, nil
	}
	patch, err := turn(node, conditions)
	if err != nil {
		return nil, err
	}
	turned, err := r.nodes.Sub("status").Patch(ctx, object.KeyOf(node), patch)
	if err != nil {
		return nil, fmt.Errorf("turning the conditions of silent node %s Unknown: %w", node.Name, err)
	}
	if readyStatus(node) == corev1.ConditionTrue {
		r.events.Normal(node, "NodeNotReady", "MarkUnknown", "Node %s status is now: NodeNotReady", node.Name)
	}
	return turned, nil
}

// setTaintsAndLabels writes what is not as it should be, in one patch.
func (r *reconciler) setTaintsAndLabels(ctx context.Context, node *corev1.Node, mode noExecute, now time.Time) error {
	taints, differ := taintsOf(node, mode, now)
	labels := labelsToSet(node.Labels)
	if !differ && labels == nil {
		return nil
	}
	patch, err := change(node, taints, differ, labels)
	if err != nil {
		return err
	}
	if _, err := r.nodes.Patch(ctx, object.KeyOf(node), patch, client.MetadataAnswer()); err != nil {
		return fmt.Errorf("setting taints and labels of node %s: %w", node.Name, err)
	}
	if !hasNoExecute(node.Spec.Taints) && hasNoExecute(taints) {
		r.counts.evicted(zoneOf(node.Labels))
	}
	return nil
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
		// Taints have no merge key: the list is replaced, and a taint that another client
		// has added meanwhile would be lost.
		metadata["resourceVersion"] = node.ResourceVersion
		whole["spec"] = map[string]any{"taints": taints}
		if len(taints) == 0 {
			whole["spec"] = map[string]any{"taints": nil}
		}
	}
	return client.MergePatch(whole)
}
