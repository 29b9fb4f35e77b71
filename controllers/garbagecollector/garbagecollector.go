// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "garbage-collector-controller"

// syncTime is how long to wait for the first state of all kinds before the collection
// begins without the rest: a kind that cannot be watched must not keep the others from
// being collected. Source: k8s.io/kubernetes/cmd/kube-controller-manager/app, core.go.
const syncTime = 30 * time.Second

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many objects are reconciled at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. Which kinds there are is
// the cluster's choice, and all of them are collected.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "patch", "delete"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	gc := &garbageCollector{
		host: h, log: h.Logger().With("controller", Name), recorder: h.Recorder(Name),
		kinds:    &kinds{},
		syncTime: syncTime,
	}
	// Source: k8s.io/kubernetes/pkg/controller/garbagecollector/metrics.
	gc.notWatched = gc.Counter("garbagecollector_controller_resources_sync_error_total", "Attempts to watch a kind that failed.").WithLabelValues()
	gc.discovery = discovery.NewFollower(h.Client().Discover, gc.log, discoverSoon, discoverAgain)
	gc.collector = &collector{
		world: server{client: h.Client(), kinds: gc.kinds},
		graph: newGraph(), add: gc.add, report: gc.report, each: someAtOnce,
	}
	gc.Keyed = controller.NewKeyed(Name, gc.reconcile, controller.Workers(o.Workers))
	gc.Feed("discovery", func(ctx context.Context, _ func(types.UID)) { gc.discovery.Run(ctx, gc.follow) })
	return gc, nil
}

// garbageCollector is a loop whose keys are UIDs of nodes of the graph, and what
// feeds the graph.
type garbageCollector struct {
	*controller.Keyed[types.UID]
	controllers.Metrics
	host       controller.Host
	log        *slog.Logger
	recorder   *events.Recorder
	collector  *collector
	kinds      *kinds
	discovery  *discovery.Follower
	syncTime   time.Duration // syncTime, or what a test waits
	notWatched prometheus.Counter

	watched map[schema.GroupKind]object.Resource // used by follow
}

// Informers are those that feed the graph now: kinds come and go.
func (gc *garbageCollector) Informers() (all []cache.Handle) {
	for _, m := range gc.kinds.all() {
		all = append(all, m.informer.Handle())
	}
	return all
}

// Run works until ctx ends and nothing of the controller runs any more.
func (gc *garbageCollector) Run(ctx context.Context) error {
	defer gc.endMonitors()
	if !gc.firstDiscovery(ctx) {
		return nil
	}
	gc.awaitSync(ctx)
	controller.CatchUp(ctx, gc)
	if ctx.Err() != nil {
		return nil
	}
	return gc.Keyed.Run(ctx)
}

// awaitSync waits until the graph has the first state of all kinds, for syncTime at most.
func (gc *garbageCollector) awaitSync(ctx context.Context) {
	timeout := time.After(gc.syncTime)
	for _, m := range gc.kinds.all() {
		select {
		case <-m.handler.Synced():
			continue
		case <-ctx.Done():
			return
		case <-timeout:
		}
		var missing []string
		for _, m := range gc.kinds.all() {
			if !m.isSynced() {
				missing = append(missing, m.resource.String())
			}
		}
		gc.notWatched.Inc()
		gc.log.Warn("beginning to collect garbage without all kinds", "missing", missing, "after", gc.syncTime.String())
		return
	}
}

func (gc *garbageCollector) reconcile(ctx context.Context, req controller.RequestOf[types.UID]) (controller.Result, error) {
	return gc.collector.look(ctx, req.Key)
}

// add is the collector's.
func (gc *garbageCollector) add(why workqueue.Cause, uids []types.UID) {
	gc.Queue().AddWith(workqueue.Add{Cause: why}, uids...)
}

// report is the collector's.
func (gc *garbageCollector) report(m misplacement) {
	d, k := m.dependent, m.dependent.kind.Value()
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: d.key.Name, UID: d.uid}}
	about.SetGroupVersionKind(k)
	owner := m.reference.kind.Value()
	// The words are upstream's, reportInvalidNamespaceOwnerRef.
	gc.recorder.Warning(about,
		"OwnerRefInvalidNamespace", "CollectGarbage",
		"ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
		owner.GroupVersion(), owner.Kind, d.key.Namespace, m.reference.name, m.reference.uid, d.key.Namespace)
}

// endMonitors ends all. Nothing discovers any more.
func (gc *garbageCollector) endMonitors() {
	for _, m := range gc.kinds.all() {
		m.mute(gc.collector)
		giveBack(m.informer)
	}
	gc.kinds.set(func(k *kinds) { k.monitors = nil })
}
