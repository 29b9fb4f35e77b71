// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// How long a key is held back for own writes.
const (
	// askAfter is how long to wait for an own write to appear before the server is
	// asked about it. A watch delivers within milliseconds; what takes seconds is a
	// connection that broke, a server that lags, or a write that the informer will
	// never see. Each further question waits twice as long, up to askSeldom: while a
	// watch is broken all keys that wrote are held back, and all of them ask.
	askAfter  = 5 * time.Second
	askSeldom = time.Minute

	// boundOfWait is when a key is released though a write has not appeared. Source:
	// k8s.io/kubernetes/pkg/controller, ExpectationsTimeout.
	boundOfWait = 5 * time.Minute
)

// writes collects what one run wrote, for each informer that should show it. A run may
// write from many goroutines.
type writes struct {
	loop *core

	mu  sync.Mutex
	all []unseenWrite
}

// Record implements client.Recorder. A delete by name alone is one of the object that is
// shown under it: another may have taken the name before the next read.
func (w *writes) Record(write client.Write) {
	answered := write.Object
	write.Object, write.Patch = nil, nil // they are the caller's
	if write.Verb == verbDelete && write.UID == "" {
		for _, informer := range w.loop.informers {
			if m, shown := informer.Meta(write.Key); shown && shows(informer, write) && sameServer(informer.Client(), write.Client) {
				write.UID = m.UID
			}
		}
	}
	var unseen []unseenWrite
	elsewhere := false
	for _, informer := range w.loop.informers {
		switch {
		case !shows(informer, write):
		case !sameServer(informer.Client(), write.Client):
			elsewhere = true
		default:
			one := unseenWrite{Write: write, informer: informer}
			switch {
			case answered != nil && goes(write.Resource, answered):
				one.Verb, one.Version, one.removed = verbDelete, "", true
			case answered != nil:
				one.stays, one.leaves = tells(informer.SelectsObject(answered))
			}
			unseen = append(unseen, one)
		}
	}
	if elsewhere && len(unseen) == 0 {
		w.loop.saysElsewhere(write)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, unseen...)
}

// goes reports whether an object is gone after a write that the server has answered with it: the write has removed the
// last finalizer of an object that was being deleted. The answer has the resourceVersion from before the write, and the
// informer shows the object as being deleted, before and after.
//
// A Namespace has finalizers of a second sort, in its spec. Where an answer does not show them, it may stay: then
// its version is awaited, which its removal is beyond, too.
// Sources: k8s.io/apiserver/pkg/registry/generic/registry, ShouldDeleteDuringUpdate, and
// k8s.io/kubernetes/pkg/registry/core/namespace/storage, ShouldDeleteNamespaceDuringUpdate.
func goes(resource object.Resource, o object.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 || grace != nil && *grace > 0 {
		return false
	}
	if resource.Group != "" || resource.Plural != "namespaces" {
		return true
	}
	switch ns := o.(type) {
	case *corev1.Namespace:
		return len(ns.Spec.Finalizers) == 0
	case *unstructured.Unstructured:
		left, _, err := unstructured.NestedStringSlice(ns.Object, "spec", "finalizers")
		return err == nil && len(left) == 0
	}
	return false
}

// tells reports what is certain of an object as it is after a write: that an informer holds
// it, or that it does not. Where it shows the object still, from before the write, it is
// going to drop it.
func tells(selected, certain bool) (stays, leaves bool) {
	return certain && selected, certain && !selected
}

func (w *writes) take() []unseenWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// ownWrites holds back keys whose last run wrote something that the informers
// have not seen.
type ownWrites[K comparable] struct {
	loop     *Keyed[K]
	patience time.Duration // askAfter, or what a test waits
	bound    time.Duration
	tasks    sync.WaitGroup

	mu      sync.Mutex
	waiting map[K]heldKey
	// overdue are the writes of keys that were released at the bound. They are waited for
	// again after the run that follows: what could not be seen for minutes costs one run
	// in each bound that knows of it, and not one run after the other.
	overdue map[K][]unseenWrite
	// skipped counts the runs that were due while their key was held, see Status.Stale.
	skipped map[schema.GroupResource]uint64
}

func (o *ownWrites[K]) init(c *Keyed[K]) {
	o.loop = c
	o.patience = askAfter
	o.bound = c.writeWait
	o.waiting = map[K]heldKey{}
	o.overdue = map[K][]unseenWrite{}
}

// settle marks the key done once the informers have seen the writes: now, or from
// a goroutine of its own.
// place is where the run is recorded.
func (o *ownWrites[K]) settle(ctx context.Context, key K, all []unseenWrite, place runs.Place) {
	unseen := left(append(o.takeOverdue(key), all...))
	if len(unseen) == 0 {
		o.loop.queue.Done(key)
		return
	}
	ended := time.Now()
	o.tasks.Go(func() {
		defer o.loop.queue.Done(key)
		defer o.note(key, nil, time.Time{})
		defer o.skips(key)
		defer func() { place.Settled(time.Since(ended)) }()
		bounded, cancel := context.WithTimeout(ctx, o.bound)
		defer cancel()
		unseen := o.await(bounded, key, unseen, ended)
		if len(unseen) == 0 || ctx.Err() != nil { // seen, or stopping
			return
		}
		o.loop.log.Error("own writes have not appeared within the bound; the next run is told of them",
			"object", textOf(key), "bound", o.bound.String(), "writes", len(unseen),
			"newest", unseen[len(unseen)-1].String(), "trouble", unseen[len(unseen)-1].informer.Trouble())
		o.mu.Lock()
		defer o.mu.Unlock()
		o.overdue[key] = newestOnly(unseen)
	})
}

// skips counts a run of a held key that is due, for the write that the key has waited for last. It is
// called before the key is done.
func (o *ownWrites[K]) skips(key K) {
	found, known := o.loop.queue.Find(key, 0)
	if !known || found.Running == nil || found.Running.Next == nil || !found.Running.Next.Until.IsZero() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.skipped == nil {
		o.skipped = map[schema.GroupResource]uint64{}
	}
	o.skipped[o.waiting[key].resource]++
}

// shows reports whether an informer is of the kind of a write, and of its namespace.
func shows(informer cache.Handle, write client.Write) bool {
	group, kind := informer.GroupKind()
	return write.Resource.Group == group && write.Resource.Kind == kind && informer.Reaches(write.Key.Namespace)
}

// sameServer reports whether two clients use one server. A version of one means nothing
// to the other.
func sameServer(a, b *client.Client) bool {
	return a == nil || b == nil || a == b || a.Server() == b.Server()
}

// saysElsewhere logs once that there are writes that no informer shows, because it reads
// from another address: a mistake, if the addresses are of one server.
func (c *core) saysElsewhere(write client.Write) {
	c.elsewhere.Do(func() {
		c.log.Info("the controller writes to another server than its informers read from, and does not wait for such writes to appear",
			"kind", write.Resource.String(), "server", write.Client.Server())
	})
}

// await waits for writes until ctx ends, and returns those that are still unseen. They are
// waited for together, since began: of each the server is asked when the first has not appeared in time.
func (o *ownWrites[K]) await(ctx context.Context, key K, list []unseenWrite, began time.Time) []unseenWrite {
	for i := 0; i < len(list); {
		w := &list[i]
		if !w.open() {
			i++
			continue
		}
		o.note(key, w, began)
		outcome, known := w.outcome(ctx, o.loop.log)
		if !known {
			return list
		}
		list = slices.Replace(list, i, i+1, outcome...)
	}
	for list = left(list); len(list) > 0; list = left(list) {
		last := len(list) - 1
		if !o.appears(ctx, key, &list[last], began) {
			return list
		}
		list = list[:last]
	}
	return nil
}

// appears waits until an informer has seen a write that is waited for since began, or need
// not. It returns false if ctx ended first.
func (o *ownWrites[K]) appears(ctx context.Context, key K, w *unseenWrite, began time.Time) bool {
	o.note(key, w, began)
	patience := o.patience
	first := patience - time.Since(began)
	for wait, said := first, false; ; wait = patience {
		if o.within(ctx, w, wait) {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if w.needNot(ctx) {
			return true
		}
		if !said {
			said = true
			o.loop.log.Warn("an own write has not appeared yet", "object", textOf(key), "waiting", w.String(), "trouble", w.informer.Trouble())
		}
		o.note(key, w, began) // which the answer may have changed
		patience = min(2*patience, max(askSeldom, o.patience))
	}
}

// within waits some time for an informer to see a write, and reports whether it has.
func (o *ownWrites[K]) within(ctx context.Context, w *unseenWrite, wait time.Duration) bool {
	seen, giveUp := w.seen()
	defer giveUp()
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-seen:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	select {
	case <-seen: // as well
		return true
	default:
		return false
	}
}

func (o *ownWrites[K]) takeOverdue(key K) []unseenWrite {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.overdue[key]
	delete(o.overdue, key)
	return list
}

// overdueOf returns the overdue writes that a run of the key gets.
func (o *ownWrites[K]) overdueOf(key K) []client.Write {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []client.Write
	for _, w := range left(slices.Clone(o.overdue[key])) {
		all = append(all, w.Write)
	}
	return all
}

// left leaves out what has been seen, and puts in order what has not: deletes first,
// then versions, the newest last. What is behind is waited for first.
func left(list []unseenWrite) []unseenWrite {
	slices.SortStableFunc(list, func(a, b unseenWrite) int {
		switch {
		case a.deletes() && b.deletes():
			return 0
		case a.deletes():
			return -1
		case b.deletes():
			return 1
		}
		return a.Version.Compare(b.Version)
	})
	// An informer sees versions in order: where it has seen the newest it has seen
	// all of its kind.
	newest := map[cache.Handle]bool{}
	behind := false
	keep := make([]bool, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		w := &list[i]
		switch {
		case w.open():
			keep[i], behind = true, true
		case w.deletes():
			// Of an object that the informer has not come to it looks as if it had
			// seen its end already.
			keep[i] = behind || !w.isSeen()
		default:
			seen, asked := newest[w.informer]
			if !asked {
				seen = w.isSeen()
				newest[w.informer] = seen
			}
			keep[i] = !seen
			behind = behind || !seen
		}
	}
	n := 0
	for i := range list {
		if keep[i] {
			list[n] = list[i]
			n++
		}
	}
	return list[:n]
}

// newestOnly leaves out the versions before the newest of each informer: what is kept
// for later must not grow with what a run writes.
func newestOnly(list []unseenWrite) []unseenWrite {
	found := map[cache.Handle]bool{}
	var kept []unseenWrite
	for _, w := range slices.Backward(list) {
		if !w.open() && !w.deletes() {
			if found[w.informer] {
				continue
			}
			found[w.informer] = true
		}
		kept = append(kept, w)
	}
	slices.Reverse(kept)
	return kept
}
