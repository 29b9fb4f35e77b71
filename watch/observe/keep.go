// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// Keep returns what a cursor may keep of a state for [Change.Kept]: hidden values are replaced by
// their tags, and of managedFields it has who wrote when, without the fields. Tags of two runs can be
// compared if both have the same key. The result shares what is not changed with the tree.
func (o *Observer) Keep(tree map[string]any) map[string]any {
	kept := o.hidden(withoutManagedFields(tree))
	var writers []any
	for _, m := range (jsontree.Tree{Value: tree}).List("metadata", "managedFields") {
		entry, ok := m.Value.(map[string]any)
		if !ok {
			continue
		}
		entry = maps.Clone(entry)
		delete(entry, "fieldsV1")
		delete(entry, "fieldsType")
		writers = append(writers, entry)
	}
	metadata, ok := kept["metadata"].(map[string]any)
	if len(writers) == 0 || !ok {
		return kept
	}
	kept, metadata = maps.Clone(kept), maps.Clone(metadata)
	metadata["managedFields"] = writers
	kept["metadata"] = metadata
	return kept
}

// RulesDigest tells the rules of an Observer from others. A state that was kept under other rules
// must not be used: it may show what is to be hidden now.
func (o *Observer) RulesDigest() [4]byte {
	h := sha256.New()
	for _, p := range o.hide {
		text := p.String()
		h.Write(binary.AppendUvarint(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	var d [4]byte
	copy(d[:], h.Sum(nil))
	return d
}

// authors returns the authors of a change.
func (o *Observer) authors(c Change, changed []diff.Difference) []event.Author {
	switch {
	case c.Verb == event.Replaced:
		return authors(nil, c.New, changed)
	case c.Kept && c.Old != nil:
		return authorsSince(c.Old, c.New, changed)
	case c.Missed:
		return authors(nil, c.New, changed)
	}
	return authors(c.Old, c.New, changed)
}

// authorsSince returns the managers that have written between two states, newest first: those whose
// entry has moved, or has no time and so does not move, and who hold something of what changed. If none
// of those holds anything, all that have moved count.
func authorsSince(old, new map[string]any, changed []diff.Difference) []event.Author { //nolint:predeclared // old and new are the words
	before := entries(old)
	moved := filter(entries(new), func(e entry) bool { return !e.isIn(before) })
	if len(moved) == 0 {
		return authors(old, new, changed)
	}
	timeless := filter(entries(new), func(e entry) bool { return e.Time.IsZero() && e.isIn(before) })
	owning := filter(append(timeless, moved...), func(e entry) bool {
		fields := e.managed.FieldSet()
		return slices.ContainsFunc(changed, func(d diff.Difference) bool { return d.Op != event.Remove && owns(fields, d) })
	})
	if len(owning) > 0 {
		moved = owning
	}
	slices.SortStableFunc(moved, func(a, b entry) int { return cmp.Compare(b.Time.Unix(), a.Time.Unix()) })
	var out []event.Author
	for _, e := range moved {
		if !slices.Contains(out, e.Author) {
			out = append(out, e.Author)
		}
	}
	return out
}
