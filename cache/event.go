// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/setpoint-io/setpoint/object"

// EventKind says how an object changed.
type EventKind int

const (
	// Added: an object that the handler did not know.
	Added EventKind = iota + 1
	// Updated: the object has changed.
	Updated
	// Replaced: the object is another one than Old, under the same name.
	Replaced
	// Deleted: the object is gone.
	Deleted
	// Resync: nothing changed; the handler asked to be told from time to time.
	Resync
)

// String returns "Added" and so on.
func (k EventKind) String() string {
	switch k {
	case Added:
		return "Added"
	case Updated:
		return "Updated"
	case Replaced:
		return "Replaced"
	case Deleted:
		return "Deleted"
	case Resync:
		return "Resync"
	}
	return "Unknown"
}

// Event is what a handler is told: from the state that it knew to the newest.
type Event[T object.Object] struct {
	Kind EventKind
	// Old is the state that the handler knew: it exists for Updated, Replaced,
	// Deleted and Resync. For Deleted it is the last state that was seen; there is
	// always one, and with it a key, where client-go may hand out a tombstone
	// without an object.
	Old Item[T]
	// New is the newest state: it exists for all but Deleted.
	New Item[T]
	// Initial marks objects that were there when the handler was added, or when
	// the informer first listed.
	Initial bool
	// Stale marks a deletion that was noticed by the object's absence from a
	// list: Old may not be the last state that the object had.
	Stale bool
}

// Item returns New, or Old for a deletion.
func (e *Event[T]) Item() Item[T] {
	if e.New.Exists() {
		return e.New
	}
	return e.Old
}

// Key returns the object's key.
func (e *Event[T]) Key() object.Key { return e.Item().Meta().Key }
