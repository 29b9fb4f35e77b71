// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/shortlist"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "node-ipam-controller"

// eventSource is whom Events name, which users filter by.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam.
const eventSource = "cidrAllocator"

// lookAgain is the time until a Node without a range is reconciled again, if no range becomes free
// before.
const lookAgain = 5 * time.Minute

// Options changes how the controller works. [Defaults] returns upstream's choices. The texts are
// those of the flags.
type Options struct {
	// Workers is how many Nodes are worked on at a time.
	Workers int
	// ClusterCIDR is the network of the Pods, or one of each family with a comma between them.
	ClusterCIDR string
	// ServiceClusterIPRange are the networks of Services, two at most. They may be empty.
	ServiceClusterIPRange string
	// NodeMask is the length of the prefix of a Node's range, in a cluster of one family.
	// NodeMaskIPv4 and NodeMaskIPv6 are those of a family. 0 is 24 for IPv4 and 64 for IPv6.
	NodeMask, NodeMaskIPv4, NodeMaskIPv6 int
	// AllocatorType is RangeAllocator, or empty.
	AllocatorType string
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		events.Rights(),
	}
}

// ipam is the controller with its metrics.
type ipam struct {
	*controller.Controller
	*counts
}

type reconciler struct {
	nodes    cache.SharedInformer[*corev1.Node]
	recorder *events.Recorder
	log      *slog.Logger
	book     *book
	wake     func(object.Key) // requests a run of a Node

	starting sync.Mutex
	started  bool // all ranges that Nodes had at the start are in the book

	mu      sync.Mutex
	waiting map[object.Key]bool // Nodes that got no range
}

// New returns the controller, built on h, which runs it. It is a prometheus.Collector as well.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	log := h.Logger().With("controller", Name)
	pools, err := o.pools(log)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	c := newCounts()
	r := &reconciler{
		nodes:    cache.Informer[*corev1.Node](h).With(client.MetadataAnswer()),
		recorder: h.Recorder(eventSource),
		log:      log,
		book:     newBook(pools, c),
		waiting:  map[object.Key]bool{},
	}
	loop := controller.New(Name, r.reconcile,
		controller.For(r.nodes, rangesChanged),
		controller.Workers(o.Workers),
	)
	r.wake = func(node object.Key) {
		loop.Queue().AddWith(workqueue.Add{Cause: workqueue.Cause{Source: Name, Verb: "RangeIsFree"}}, node)
	}
	return &ipam{loop, c}, nil
}

// podCIDR is the first of the ranges of a Node.
// Source of the numbers: k8s.io/api/core/v1/generated.proto.
var podCIDR = wire.Path{Names: "spec.podCIDR", Numbers: [4]int32{2, 1}}

// rangesChanged chooses the changes of Nodes that concern their ranges. Heartbeats do not.
func rangesChanged(e cache.Event[*corev1.Node]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	was, errWas := e.Old.Text(podCIDR)
	is, errIs := e.New.Text(podCIDR)
	return was != is || errWas != nil || errIs != nil || e.Old.Meta().Deleting() != e.New.Meta().Deleting()
}

// reconcile gives one Node its ranges, or notes those that it has.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	if err := r.start(ctx); err != nil {
		return controller.Result{}, err
	}
	node, err := r.nodes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.endWaiting(req.Key)
		r.freed(r.book.release(req.Key.Name))
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	switch {
	case len(textsOf(node)) > 0:
		r.endWaiting(req.Key)
		r.keep(ctx, node)
		return controller.Result{}, nil
	case node.DeletionTimestamp != nil:
		r.endWaiting(req.Key)
		because(ctx, codeDeleted, "the Node is being deleted, so it gets no range", "the Node is gone")
		return controller.Result{}, nil
	}
	return r.give(ctx, node)
}

// start notes the ranges of all Nodes, which it reads from the server: the cache of a process
// that has just taken over may lack the last ranges that the process before it gave.
func (r *reconciler) start(ctx context.Context) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	if r.started {
		return nil
	}
	nodes, _, err := r.nodes.Server().List(ctx, client.Selection{WithoutManagedFields: true})
	if err != nil {
		return fmt.Errorf("listing the nodes, whose ranges no other node may get: %w", err)
	}
	for _, node := range nodes {
		ranges, _ := rangesOf(node) // a run for the Node reports what cannot be read
		if len(ranges) > 0 {
			r.book.hold(node.Name, node.UID, ranges)
		}
	}
	r.book.advance()
	r.started = true
	for _, u := range r.book.usages() {
		r.log.Info("the ranges of all nodes are known", "network", u.network.String(), "used", u.used, "ranges", u.all, "services", u.services)
	}
	return nil
}

// mostNamed bounds the Nodes that are named in one sentence.
const mostNamed = 3

// keep notes the ranges that a Node has, and states what is wrong with them.
func (r *reconciler) keep(ctx context.Context, node *corev1.Node) {
	ranges, err := rangesOf(node)
	if err != nil {
		because(ctx, codeMalformed, "spec.podCIDRs cannot be read: {error}", unchangeable, "error", err)
		r.log.Warn("a range of a node cannot be read; another node may get its addresses", "node", node.Name, "error", err)
	}
	free, others := r.book.hold(node.Name, node.UID, ranges)
	r.freed(free)
	if len(others) > 0 {
		because(ctx, codeShared, "{nodes} have some of the addresses of {ranges} too", unchangeable, "nodes", shortlist.Join(others, mostNamed), "ranges", list(ranges))
		r.recorder.Warning(node, reasonShared, actionAllocate, "The addresses of %s are also those of Nodes: %s", list(ranges), shortlist.Join(others, mostNamed))
		r.log.Warn("several nodes have the same addresses for their pods; delete all of them but one, and create them again", "node", node.Name, "ranges", list(ranges), "others", shortlist.Join(others, mostNamed))
	}
	if outside := r.book.outside(ranges); len(outside) > 0 {
		because(ctx, codeElsewhere, "{ranges} is outside of {networks}", unchangeable, "ranges", list(outside), "networks", r.book.networks())
		r.log.Warn("a node has a range that --cluster-cidr does not have", "node", node.Name, "ranges", list(outside), "networks", r.book.networks())
	}
	if len(ranges) == 1 && len(r.book.pools) == 2 {
		because(ctx, codeOneFamily, "the Node has {ranges} alone, and the cluster has {networks}", unchangeable, "ranges", list(ranges), "networks", r.book.networks())
	}
}

// give gives ranges to a Node that has none.
func (r *reconciler) give(ctx context.Context, node *corev1.Node) (controller.Result, error) {
	isNew := r.wait(object.KeyOf(node)) // before it looks: a range that becomes free from now on wakes it
	ranges, crossed, full := r.book.assign(node.Name, node.UID)
	if full != nil && r.reclaim(ctx) {
		ranges, crossed, full = r.book.assign(node.Name, node.UID)
	}
	if full != nil {
		if isNew {
			r.status(node, reasonNotAvailable, full)
		}
		because(ctx, codeNoRange, "the Node gets no range: {usage}", "a Node is deleted, or the manager is started with a larger --cluster-cidr or longer masks", "usage", full)
		return controller.Result{After: lookAgain}, nil
	}
	r.endWaiting(object.KeyOf(node))
	err := r.write(ctx, node, ranges)
	for _, u := range crossed { // after an error as well: the next run finds the ranges in the book, and no level is crossed
		r.fillingUp(node, u)
	}
	return controller.Result{}, err
}

// reclaim releases the ranges of Nodes that are gone without a deletion that the informer saw:
// a Node that was created and deleted while the informer had no connection. It reports whether
// there were any.
func (r *reconciler) reclaim(ctx context.Context) (released bool) {
	nodes := r.nodes.Snapshot()
	for _, name := range r.book.names() {
		key := object.Key{Name: name}
		if nodes.Get(key).Exists() {
			continue
		}
		if _, err := r.nodes.Server().Get(ctx, key); client.AbsentAt(err, key) {
			released = r.book.release(name) > 0 || released
		}
	}
	return released
}

// wait notes that a Node waits for a range, and reports whether that is new.
func (r *reconciler) wait(node object.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := r.waiting[node]
	r.waiting[node] = true
	return !waits
}

func (r *reconciler) endWaiting(node object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, node)
}

// freed has the Nodes run again that wait for a range, if some became free.
func (r *reconciler) freed(ranges int) {
	if ranges == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for node := range r.waiting {
		r.wake(node)
	}
}

// textsOf returns the ranges of a Node as they are written.
func textsOf(node *corev1.Node) []string {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		return []string{node.Spec.PodCIDR}
	}
	return node.Spec.PodCIDRs
}

// rangesOf returns the ranges of a Node that can be read, and an error about the others.
func rangesOf(node *corev1.Node) (ranges []netip.Prefix, err error) {
	for _, text := range textsOf(node) {
		r, failure := parse(text)
		if failure != nil {
			err = failure
			continue
		}
		ranges = append(ranges, r)
	}
	return slices.Clip(ranges), err
}
