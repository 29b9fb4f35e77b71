// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// NotSyncedError is the error of a read from an informer that has not listed its kind yet, and
// of a wait for that which ended. The error of a read has only the text of its cause: if that
// is a 404 of the server, apierrors.IsNotFound must be false, as the object may exist.
type NotSyncedError struct {
	Kind   string // "pods"
	Reason string // why the informer has not listed its kind
	Cause  error  // the last error of the informer; nil if there was none
}

func (e *NotSyncedError) Error() string {
	text := "the informer of " + e.Kind + " has not synced: " + e.Reason
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *NotSyncedError) Unwrap() error { return e.Cause }

// unsynced returns the error of a read before the first list.
func (i *informer) unsynced() error {
	why := i.whyNot()
	if why.Cause != nil {
		why.Cause = errors.New(why.Cause.Error())
	}
	return why
}

// whyNot returns why the informer has not synced.
func (i *informer) whyNot() *NotSyncedError {
	if p := i.problem.Load(); p != nil {
		return &NotSyncedError{Kind: i.name, Reason: p.class, Cause: p.err}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	reason := "the first list has not ended yet"
	switch {
	case i.stopped:
		reason = "the informer has stopped"
	case i.running == nil:
		reason = "the informer has not been started"
	}
	return &NotSyncedError{Kind: i.name, Reason: reason}
}

// goneWait is a wait for the end of an object.
type goneWait struct {
	done chan struct{}
	// removed: the wait does not end when the deletion of the object begins.
	removed bool
}

// waitGone returns a channel that is closed once the store has no object of this UID under the
// key, or, unless removed is set, has it with a deletion timestamp, and a function that ends the
// wait. An empty UID is any.
func (i *informer) waitGone(key object.Key, uid types.UID, removed bool) (<-chan struct{}, func()) {
	i = i.lock()
	defer i.mu.Unlock()
	w := goneWait{make(chan struct{}), removed}
	e := i.store.current.Load().at(key)
	if e == nil || (e.deleting() && !removed) || (uid != "" && e.identity() != uid) {
		close(w.done)
		return w.done, func() {}
	}
	i.gone[key] = append(i.gone[key], w)
	return w.done, func() {
		i := i.lock()
		defer i.mu.Unlock()
		i.endWaits(key, func(other goneWait) bool { return other == w })
	}
}

// endWaits removes some of the waits for the end of an object. mu is held.
func (i *informer) endWaits(key object.Key, which func(goneWait) bool) {
	left := slices.DeleteFunc(i.gone[key], which)
	if len(left) == 0 {
		delete(i.gone, key)
		return
	}
	i.gone[key] = left
}

// tellGone ends the waits that a change of an object ends. mu is held.
func (i *informer) tellGone(d delta) {
	if len(i.gone) == 0 {
		return
	}
	gone := d.new == nil || (d.old != nil && !d.old.sameObject(d.new))
	if !gone && !d.new.deleting() {
		return
	}
	i.endWaits(d.key, func(w goneWait) bool {
		ends := gone || !w.removed
		if ends {
			close(w.done)
		}
		return ends
	})
}

// waitForSync waits for the first list.
func (i *informer) waitForSync(ctx context.Context) error {
	select {
	case <-i.synced:
		return nil
	case <-ctx.Done():
	case <-i.ended:
	}
	select {
	case <-i.synced:
		return nil
	default:
	}
	why := i.whyNot()
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", why, ctx.Err())
	}
	return why
}
