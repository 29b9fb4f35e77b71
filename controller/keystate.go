// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// KeyState returns what the loop does at present about the object with a key, which must be of the kind in [Status]. It is
// false if the keys of the loop do not stand for objects. It is safe for concurrent use.
func (c *Keyed[K]) KeyState(of object.Key) (runs.KeyState, bool) {
	key, ok := any(of).(K)
	group, kind := c.objects()
	if !ok || kind == "" {
		return runs.KeyState{}, false
	}
	return c.stateOf(key, runs.ObjectOf(object.Ref{Group: group, Kind: kind, Key: of})), true
}

// UIDState returns what the loop does at present about an object, by its UID. It is false if the keys of the loop are no UIDs. It is safe
// for concurrent use.
func (c *Keyed[K]) UIDState(of types.UID) (runs.KeyState, bool) {
	key, ok := any(of).(K)
	if !ok || of == "" {
		return runs.KeyState{}, false
	}
	return c.stateOf(key, runs.Object{UID: of}), true
}

// stateOf returns what the loop does at present about a key that stands for an object.
func (c *Keyed[K]) stateOf(key K, of runs.Object) runs.KeyState {
	state := runs.KeyState{Controller: c.name, Key: textOf(key), Object: of, State: runs.StateIdle, Informers: c.lags()}
	held, isHeld := c.own.heldFor(key)
	found, known := c.queue.Find(key, runs.AheadCounted)
	switch {
	case !known:
	case found.Running != nil:
		state.State, state.Failures, state.Requested = runs.StateRunning, found.Running.Failures, found.Running.Next != nil
		state.Since = &found.Running.Since
		if isHeld { // to the queue, the key is still processed
			state.State, state.Since, state.Unseen = runs.StateHeld, &held.since, held.write
		}
	case found.Waiting.Until.IsZero():
		state.State, state.Failures, state.Since = runs.StateReady, found.Waiting.Failures, &found.Waiting.Since
		state.Ahead, state.Ready = found.Ahead, found.Ready
	default:
		state.State, state.Failures, state.Until = runs.StateDelayed, found.Waiting.Failures, &found.Waiting.Until
	}
	return state
}

// errNotSynced is the trouble of an informer that has not read its first state.
var errNotSynced = errors.New("it has not read the objects of the kind yet")

// lags returns the informers of the loop that are not current.
func (c *core) lags() (all []runs.InformerLag) {
	for _, informer := range c.informers {
		status := informer.Status()
		err := status.Trouble
		if err == nil && !status.Synced {
			err = errNotSynced
		}
		if err == nil {
			continue
		}
		lag := runs.InformerLag{Kind: informer.Kind(), Trouble: err.Error()}
		if !status.Heard.IsZero() {
			lag.Heard = &status.Heard
		}
		all = append(all, lag)
	}
	return all
}

// heldKey is why a key is held, and since when.
type heldKey struct {
	text     string
	resource schema.GroupResource // of the write
	write    *runs.Unseen
	since    time.Time
}

// note remembers the write for which a key is held since a time, or that it is not held any more.
func (o *ownWrites[K]) note(key K, w *unseenWrite, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w == nil {
		delete(o.waiting, key)
		return
	}
	o.waiting[key] = heldKey{w.String(), schema.GroupResource{Group: w.Resource.Group, Resource: w.Resource.Plural}, w.forRecord(), since}
}

// heldFor returns why a key is held.
func (o *ownWrites[K]) heldFor(key K) (heldKey, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	held, isHeld := o.waiting[key]
	return held, isHeld
}

// forRecord returns the write as package runs has it.
func (w *unseenWrite) forRecord() *runs.Unseen {
	return &runs.Unseen{
		Verb: w.Verb, Version: string(w.Version), Lookup: w.open(), Kind: w.informer.Kind(),
		Object: runs.ObjectOf(object.Ref{Group: w.Resource.Group, Kind: w.Resource.Kind, Key: w.Key, UID: w.UID}),
	}
}
