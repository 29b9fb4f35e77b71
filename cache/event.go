// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/setpoint-io/setpoint/object"

// EventKind says how an object changed.
type EventKind int

const (
	// Added is an object that is new to the handler.
	Added EventKind = iota + 1
	// Updated is a change of the object.
	Updated
	// Replaced is another object than Old under the same name.
	Replaced
	// Deleted is the end of the object.
	Deleted
	// Resync is no change: the handler requested a resync.
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

// Event is a change, from the last state that the handler knows to the newest.
type Event[T object.Object] struct {
	Kind EventKind
	// Old is the state that the handler knows. It exists for Updated, Replaced, Deleted and
	// Resync. For Deleted it is the last state that the informer has seen: there is always
	// one, where client-go may deliver a tombstone without an object.
	Old Item[T]
	// New is the newest state: it exists for all but Deleted.
	New Item[T]
	// Initial is set for objects that existed when the handler was added or when the
	// informer first listed.
	Initial bool
	// Stale is set for a deletion that the informer noticed because a list did not have the
	// object: Old may not be its last state.
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
func (e *Event[T]) Key() object.Key { return e.Item().Key() }
