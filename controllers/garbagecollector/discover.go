// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

const (
	// discoverAgain is the time between two discoveries, and discoverSoon how soon after
	// a change of a custom kind one follows. Source of the former:
	// k8s.io/kubernetes/cmd/kube-controller-manager/app, core.go.
	discoverAgain = 30 * time.Second
	discoverSoon  = 250 * time.Millisecond
)

// Events are many, have no owners, and expire by themselves. Source:
// k8s.io/kubernetes/pkg/controller/garbagecollector, ignoredResources.
func isIgnored(k schema.GroupKind) bool {
	return k.Kind == "Event" && (k.Group == "" || k.Group == "events.k8s.io")
}

// isCollected reports whether objects of a kind can be collected: the collector must be
// able to list, watch and delete them.
func isCollected(s client.Served) bool {
	return s.Can("delete") && s.Can("list") && s.Can("watch") && !isIgnored(s.GroupVersionKind().GroupKind())
}

func isRead(s client.Served) bool { return s.Can("get") }

// firstDiscovery discovers until there is something to watch. It returns false if
// ctx ended first.
func (gc *garbageCollector) firstDiscovery(ctx context.Context) bool {
	return gc.discovery.First(ctx, func(ctx context.Context, set discovery.Set) bool {
		gc.follow(ctx, set)
		return len(gc.watched) > 0
	})
}

// follow begins to watch new kinds, and ends watching kinds that are gone.
func (gc *garbageCollector) follow(ctx context.Context, set discovery.Set) {
	served, wanted := set.Where(isRead), set.Where(isCollected)
	changed := gc.kinds.serve(served)

	watched := map[schema.GroupKind]object.Resource{}
	for _, m := range gc.kinds.all() {
		k := m.kind.Value().GroupKind()
		r, still := wanted[k]
		switch {
		case !still:
			gc.leave(m)
			changed = true
		case r == m.resource || gc.replace(ctx, m, r):
			watched[k] = r
		default:
			watched[k] = m.resource // again next time
		}
	}
	for k, r := range wanted {
		if _, known := watched[k]; !known && gc.listen(newMonitor(gc.host, r)) {
			watched[k] = r
			changed = true
		}
	}
	gc.watched = watched
	if changed {
		gc.collector.tell(workqueue.Cause{Source: "discovery", Verb: workqueue.Updated}, (*graph).reconsider)
	}
}

// leave ends watching a kind that is no longer served.
func (gc *garbageCollector) leave(m *monitor) {
	gc.kinds.set(func(k *kinds) { delete(k.monitors, m.kind.Value().GroupKind()) })
	m.mute(gc.collector)
	m.forget(gc.collector, nothing)
	giveBack(m.informer)
	gc.log.Debug("a kind is no longer served", "kind", m.resource.String())
}

// replace watches a kind in another version, as soon as an informer has synced it. The
// graph keeps its state meanwhile: foreground deletions continue to wait.
func (gc *garbageCollector) replace(ctx context.Context, old *monitor, r object.Resource) bool {
	m := newMonitor(gc.host, r)
	sync, cancel := context.WithTimeout(ctx, gc.syncTime)
	defer cancel()
	if err := m.informer.WaitForSync(sync); err != nil {
		gc.notWatched.Inc()
		gc.log.Warn("still watching a kind in its former version", "kind", r.String(), "version", old.resource.Version, "error", err)
		giveBack(m.informer)
		return false
	}
	old.mute(gc.collector) // one monitor of a kind at a time: the older one may lag behind
	if !gc.listen(m) {
		return false
	}
	select {
	case <-m.handler.Synced():
	case <-ctx.Done():
	}
	m.forget(gc.collector, m.shows)
	giveBack(old.informer)
	return true
}

// listen feeds the graph from a monitor, from now on.
func (gc *garbageCollector) listen(m *monitor) bool {
	if err := m.listen(gc.collector, gc.watcherOf(m.resource)); err != nil {
		gc.notWatched.Inc()
		gc.log.Warn("a kind is not watched; trying again", "kind", m.resource.String(), "error", err)
		giveBack(m.informer)
		return false
	}
	gc.kinds.set(func(k *kinds) { k.monitors[m.kind.Value().GroupKind()] = m })
	return true
}

// watcherOf returns the function to call when an object of the kind changes: custom kinds
// and aggregated servers change what is served.
func (gc *garbageCollector) watcherOf(r object.Resource) func() {
	switch r.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return gc.discovery.Soon
	}
	return nil
}
