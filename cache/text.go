// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"iter"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Text reads one text of the object without decoding the rest: a tenth of the work, for
// an index or a predicate that needs no more. It is empty if the object has none.
func (i Item[T]) Text(p wire.Path) (string, error) {
	if i.entry == nil {
		return "", errNoItem
	}
	return i.entry.textAt(p)
}

func (e *entry) textAt(p wire.Path) (value string, err error) {
	err = e.read(func(raw []byte) error {
		text, err := e.form.encoding.Text(raw, p)
		value = string(text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading %s from the cache: %w", e.key(), err)
	}
	return value, nil
}

// textIndex is the name of the index of a text. A user's index cannot be called so but
// on purpose.
func textIndex(p wire.Path) string { return "." + p.Names }

// IndexText has [Snapshot.WithText] find objects by a text, such as Pods by
// [wire.NodeName]. Several who need the same one share it; objects without that text
// stand in no value.
func (s SharedInformer[T]) IndexText(p wire.Path) {
	// The error is that there is such an index.
	_ = s.informer.store.addIndex(textIndex(p), func(e *entry) ([]string, error) {
		value, err := e.textAt(p)
		if err != nil || value == "" {
			return nil, err
		}
		return []string{value}, nil
	})
}

// WithText returns the objects with a value of a text that
// [SharedInformer.IndexText] names; none if it was not named.
func (s Snapshot[T]) WithText(p wire.Path, value string) iter.Seq2[object.Key, Item[T]] {
	return s.Index(textIndex(p), value)
}

// TextValues returns the values of a text that [SharedInformer.IndexText] names, and
// how many objects have each.
func (s Snapshot[T]) TextValues(p wire.Path) iter.Seq2[string, int] {
	return s.IndexValues(textIndex(p))
}
