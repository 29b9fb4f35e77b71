// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

const (
	// discoverAgain is how often the server is asked what it serves, and
	// discoverSoon how soon after a custom kind has changed. From then on the pauses
	// double: the server itself takes a while to serve what was defined.
	// Source of the former: k8s.io/kubernetes/cmd/kube-controller-manager/app, core.go.
	discoverAgain = 30 * time.Second
	discoverSoon  = 250 * time.Millisecond
)

// Events are many, are owned by nobody and go by themselves.
// Source: k8s.io/kubernetes/pkg/controller/garbagecollector, ignoredResources.
func isIgnored(k schema.GroupKind) bool {
	return k.Kind == "Event" && (k.Group == "" || k.Group == "events.k8s.io")
}

// isCollected reports whether objects of a kind can be owners and dependents as far
// as a collector is concerned: it has to see them, and be able to delete them.
func isCollected(s client.Served) bool {
	return s.Can("delete") && s.Can("list") && s.Can("watch") && !isIgnored(s.GroupVersionKind().GroupKind())
}

// plan is what a discovery comes to.
type plan struct {
	served  map[schema.GroupKind]object.Resource // what can be read
	watched map[schema.GroupKind]object.Resource // what is to be watched
}

// planOf says what is to be watched, where before was. What a discovery could not
// find out stays as it was: err names it, if it is a *client.DiscoveryError.
func planOf(found []client.Served, err error, before plan) plan {
	now := plan{served: map[schema.GroupKind]object.Resource{}, watched: map[schema.GroupKind]object.Resource{}}
	var partial *client.DiscoveryError
	errors.As(err, &partial)
	keep := func(of, before map[schema.GroupKind]object.Resource) {
		for k, r := range before {
			if partial != nil && partial.Failed[r.GroupVersion()] != nil {
				of[k] = r
			}
		}
	}
	keep(now.served, before.served)
	keep(now.watched, before.watched)
	add := func(to map[schema.GroupKind]object.Resource, r object.Resource) {
		k := r.GroupVersionKind().GroupKind()
		if _, known := to[k]; !known {
			to[k] = r
		}
	}
	for _, s := range found {
		if s.Can("get") {
			add(now.served, s.Resource)
		}
		if isCollected(s) {
			add(now.watched, s.Resource)
		}
	}
	return now
}

// firstDiscovery discovers until there is something to watch. It returns false if
// ctx ended first.
func (gc *garbageCollector) firstDiscovery(ctx context.Context) bool {
	for pause := discoverSoon; ; pause = min(2*pause, discoverAgain) {
		gc.discover(ctx)
		if len(gc.now.watched) > 0 {
			return true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// discoverForEver discovers from time to time, and soon after somebody asks for it.
func (gc *garbageCollector) discoverForEver(ctx context.Context) {
	pause := discoverAgain
	next := time.Now().Add(pause)
	for {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
			gc.discover(ctx)
			pause = min(2*pause, discoverAgain)
			next = time.Now().Add(pause)
		case <-gc.rediscover:
			pause = discoverSoon
			if soon := time.Now().Add(pause); soon.Before(next) {
				next = soon
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// discoverSoonAgain asks for a discovery. It never blocks.
func (gc *garbageCollector) discoverSoonAgain() {
	select {
	case gc.rediscover <- struct{}{}:
	default:
	}
}

// discover asks the server what it serves and watches that.
func (gc *garbageCollector) discover(ctx context.Context) {
	found, err := gc.host.Client().Discover(ctx)
	if ctx.Err() != nil {
		return
	}
	gc.say(err)
	var partial *client.DiscoveryError
	if err != nil && !errors.As(err, &partial) || len(found) == 0 {
		return
	}
	gc.follow(ctx, planOf(found, err, gc.now))
}

// say logs what is wrong with discovery, once.
func (gc *garbageCollector) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == gc.trouble {
		return
	}
	if gc.trouble = text; err == nil {
		gc.log.Info("all kinds are known again")
		return
	}
	gc.log.Warn("not all kinds are known; those that were before are watched on", "error", err)
}

// follow begins to watch what is new and ends with what is gone.
func (gc *garbageCollector) follow(ctx context.Context, now plan) {
	changed := !maps.Equal(now.served, gc.now.served)
	gc.now.served = now.served
	gc.kinds.set(func(k *kinds) { k.served = now.served })

	watched := map[schema.GroupKind]object.Resource{}
	for _, m := range gc.kinds.all() {
		k := m.kind.Value().GroupKind()
		r, still := now.watched[k]
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
	for k, r := range now.watched {
		if _, known := watched[k]; !known && gc.listen(newMonitor(gc.host, r)) {
			watched[k] = r
			changed = true
		}
	}
	gc.now.watched = watched
	if changed {
		gc.collector.tell(workqueue.Cause{Source: "discovery", Verb: workqueue.Updated}, (*graph).reconsider)
	}
}

// leave ends watching a kind that is served no more.
func (gc *garbageCollector) leave(m *monitor) {
	gc.kinds.set(func(k *kinds) { delete(k.monitors, m.kind.Value().GroupKind()) })
	m.mute(gc.collector)
	m.forget(gc.collector, nothing)
	giveBack(m.informer)
	gc.log.Debug("a kind is served no more", "kind", m.resource.String())
}

// replace watches a kind in another version, once an informer has that. The graph
// keeps what it knows meanwhile: foreground deletions go on waiting.
func (gc *garbageCollector) replace(ctx context.Context, old *monitor, r object.Resource) bool {
	m := newMonitor(gc.host, r)
	sync, cancel := context.WithTimeout(ctx, gc.syncTime)
	defer cancel()
	if err := m.informer.WaitForSync(sync); err != nil {
		gc.log.Warn("a kind is watched on in its former version", "kind", r.String(), "version", old.resource.Version, "error", err)
		giveBack(m.informer)
		return false
	}
	old.mute(gc.collector) // one voice at a time: the older one may lag behind
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

// listen has a monitor tell the graph, from now on.
func (gc *garbageCollector) listen(m *monitor) bool {
	if err := m.listen(gc.collector, gc.watcherOf(m.resource)); err != nil {
		gc.log.Warn("a kind is not watched; trying again", "kind", m.resource.String(), "error", err)
		giveBack(m.informer)
		return false
	}
	gc.kinds.set(func(k *kinds) { k.monitors[m.kind.Value().GroupKind()] = m })
	return true
}

// watcherOf returns what is to be called when an object of the kind changes: custom
// kinds and aggregated servers change what is served.
func (gc *garbageCollector) watcherOf(r object.Resource) func() {
	switch r.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return gc.discoverSoonAgain
	}
	return nil
}
