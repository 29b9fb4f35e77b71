// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"iter"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// cursor is what the journal knows of the last run. Without a journal there was none.
type cursor struct{ journal *journal.Journal }

func (c cursor) none() bool { return c.journal == nil }

// selection returns the version up to which a selection has been published, and whether a run
// began with it.
func (c cursor) selection(name string) (version object.Version, known bool) {
	if c.none() {
		return "", false
	}
	v, known := c.journal.Selection(name)
	return object.Version(v), known
}

// empty notes that selections are known and had no objects, except those that are known already. It
// forgets another selection with it, if it is named.
func (c cursor) empty(forget string, selections ...string) error {
	if c.none() {
		return nil
	}
	var b journal.Batch
	if forget != "" {
		b.Drop(forget)
	}
	for _, name := range selections {
		if _, known := c.selection(name); !known {
			b.Version(name, "")
		}
	}
	return c.journal.Commit(&b)
}

func (c cursor) get(selection string, key object.Key) (journal.Seen, bool, error) {
	if c.none() {
		return journal.Seen{}, false, nil
	}
	return c.journal.Get(selection, key)
}

// objects returns the objects of a selection, and a function that says afterwards whether they were
// all.
func (c cursor) objects(selection string) (iter.Seq2[object.Key, journal.Seen], func() error) {
	if c.none() {
		return func(func(object.Key, journal.Seen) bool) {}, func() error { return nil }
	}
	return c.journal.Objects(selection)
}

// digest returns the digest of an object, with the key of the journal.
func (c cursor) digest(content tree) observe.Digest {
	var key []byte
	if !c.none() {
		key = c.journal.Key()
	}
	return observe.DigestOf(content, key)
}
