// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// want is a kind that a quota needs: its whole objects, or their metadata alone.
type want struct {
	kind  schema.GroupResource
	whole bool
}

// watches are the kinds that are watched, each for as long as a quota needs it. It is safe for
// concurrent use.
type watches struct {
	host controller.Host
	log  *slog.Logger
	// changed is called when an object changes, and wake when quotas must run because a kind
	// that they need is counted now or is not served any more.
	changed func(w want, v view, m object.Meta, cause workqueue.Cause)
	wake    func(cause workqueue.Cause, quotas ...object.Key)

	mu    sync.Mutex
	kinds kinds
	open  map[want]*watch
	needs map[object.Key][]want
	ended bool
	tasks sync.WaitGroup
}

// watch is one kind that is watched. Its view is not used after stop is closed.
type watch struct {
	view     view
	resource object.Resource
	stop     chan struct{}
	failing  bool // the last look found it so
	said     bool // the quotas that need the kind have run since it fails
}

// found is what is known of a kind that a quota needs.
type found struct {
	view view  // nil unless the kind is counted
	gone bool  // the server does not serve the kind, so it has no objects
	soon bool  // the kind is being discovered or listed, and nothing has failed
	err  error // why the kind is not counted, or why its count may be old
}

// need begins to watch what a quota needs, and ends to watch what no quota needs any more. A
// quota that is gone needs nothing.
func (ws *watches) need(quota object.Key, wants []want) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if slices.Equal(ws.needs[quota], wants) {
		return
	}
	if ws.needs[quota] = wants; len(wants) == 0 {
		delete(ws.needs, quota)
	}
	ws.sync()
}

// serve takes over what the server serves now, and wakes the quotas that this concerns.
func (ws *watches) serve(set discovery.Set) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	before := ws.kinds
	ws.kinds = kindsOf(set)
	ws.sync()
	cause := workqueue.Cause{Source: "discovery", Verb: workqueue.Updated}
	for quota, wants := range ws.needs {
		if slices.ContainsFunc(wants, func(w want) bool { return differs(before, ws.kinds, w.kind) }) {
			ws.wake(cause, quota)
		}
	}
}

// differs reports whether two discoveries say different things of a kind.
func differs(before, now kinds, kind schema.GroupResource) bool {
	was, wasGone, wasErr := before.resource(kind)
	is, isGone, isErr := now.resource(kind)
	return was != is || wasGone != isGone || (wasErr == nil) != (isErr == nil)
}

// sync opens and closes watches so that they are those that quotas need of what is served. The
// caller holds mu.
func (ws *watches) sync() {
	needed := map[want]bool{}
	for _, wants := range ws.needs {
		for _, w := range wants {
			needed[w] = true
		}
	}
	for w, open := range ws.open {
		r, _, err := ws.kinds.resource(w.kind)
		if !needed[w] || err != nil || r != open.resource {
			ws.close(w)
		}
	}
	if ws.ended {
		return
	}
	for w := range needed {
		if _, is := ws.open[w]; is {
			continue
		}
		if r, _, err := ws.kinds.resource(w.kind); err == nil {
			ws.begin(w, r)
		}
	}
}

// begin watches a kind. The caller holds mu.
func (ws *watches) begin(w want, r object.Resource) {
	opened := &watch{resource: r, stop: make(chan struct{})}
	ready := make(chan struct{}) // closed when opened has its view
	v, err := open(ws.host, watched{r, w.whole}, func(m object.Meta, cause workqueue.Cause) {
		<-ready
		ws.changed(w, opened.view, m, cause)
	})
	if err != nil {
		ws.log.Warn("a kind that a ResourceQuota limits cannot be watched", "kind", r.String(), "error", err)
		return
	}
	opened.view = v
	close(ready)
	ws.open[w] = opened
	ws.log.Debug("a ResourceQuota limits a kind: watching it", "kind", r.String(), "whole", w.whole)
	ws.tasks.Go(func() { ws.await(w, opened) })
}

// await wakes the quotas that need a kind as soon as it can be counted.
func (ws *watches) await(w want, opened *watch) {
	select {
	case <-opened.view.synced():
	case <-opened.stop:
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.wake(workqueue.Cause{Source: opened.resource.Plural, Verb: "Synced"}, ws.users(w)...)
}

// look wakes the quotas that need a kind whose watch has failed for two looks, and again when it
// works: no object's event does that, because none comes.
func (ws *watches) look() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w, open := range ws.open {
		was := open.failing
		open.failing = open.view.trouble() != nil
		if was == open.failing && open.said != open.failing {
			open.said = open.failing
			ws.wake(workqueue.Cause{Source: open.resource.Plural, Verb: "Watched"}, ws.users(w)...)
		}
	}
}

// users returns the quotas that need a kind. The caller holds mu.
func (ws *watches) users(w want) (quotas []object.Key) {
	for quota, wants := range ws.needs {
		if slices.Contains(wants, w) {
			quotas = append(quotas, quota)
		}
	}
	return quotas
}

// close ends a watch. The caller holds mu.
func (ws *watches) close(w want) {
	opened := ws.open[w]
	delete(ws.open, w)
	close(opened.stop)
	opened.view.close()
	ws.log.Debug("no ResourceQuota limits a kind any more, or it is served in another way: not watching it", "kind", opened.resource.String(), "whole", w.whole)
}

// find returns what is known of a kind that a quota needs.
func (ws *watches) find(w want) found {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if _, gone, err := ws.kinds.resource(w.kind); err != nil {
		return found{gone: gone, soon: !ws.kinds.known(), err: err}
	}
	opened := ws.open[w]
	if opened == nil {
		return found{err: fmt.Errorf("%s are not watched", w.kind)}
	}
	err := opened.view.trouble()
	select {
	case <-opened.view.synced():
		return found{view: opened.view, err: err}
	default:
	}
	if err == nil {
		return found{soon: true, err: fmt.Errorf("%s are being listed", w.kind)}
	}
	return found{err: err}
}

// end ends all watches.
func (ws *watches) end() {
	ws.mu.Lock()
	ws.ended = true
	for _, w := range slices.Collect(maps.Keys(ws.open)) {
		ws.close(w)
	}
	ws.mu.Unlock()
	ws.tasks.Wait()
}
