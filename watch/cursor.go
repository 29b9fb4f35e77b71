// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"iter"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// cursor is what is known of the last run. Without a journal there was none.
type cursor struct{ journal *journal.Journal }

func (c cursor) none() bool { return c.journal == nil }

// key is what digests are keyed with.
func (c cursor) key() []byte {
	if c.none() {
		return nil
	}
	return c.journal.Key()
}

// selection returns up to which version a selection has been told of, and whether there
// was a run that had all of it.
func (c cursor) selection(name string) (version object.Version, known bool) {
	if c.none() {
		return "", false
	}
	v, known := c.journal.Selection(name)
	return object.Version(v), known
}

// empty notes that selections are known and that nothing was in them, those excepted that are
// known already; and forgets another one with it, if it is named.
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

// objects returns what is known of a selection, and says afterwards if that was all.
func (c cursor) objects(selection string) (iter.Seq2[object.Key, journal.Seen], func() error) {
	if c.none() {
		return func(func(object.Key, journal.Seen) bool) {}, func() error { return nil }
	}
	return c.journal.Objects(selection)
}

// packed is a digest as the journal keeps it.
func packed(d observe.Digest) (b [16]byte) {
	copy(b[:8], d.Content[:])
	copy(b[8:], d.Status[:])
	return b
}

func digestOf(seen journal.Seen) (d observe.Digest) {
	copy(d.Content[:], seen.Digest[:8])
	copy(d.Status[:], seen.Digest[8:])
	return d
}
