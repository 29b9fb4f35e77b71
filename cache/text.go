// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"

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

// MayHave reports whether the object may have anything, or the text that a path names, at one of some paths, which may lead through lists: a way to
// find out, without decoding it, that an object need not be decoded. It is false only if the object certainly
// has nothing such there. It may be true of an object in JSON, and of one that cannot be read. Each object keeps the answers to the first eight
// lists of paths with which its informer is queried: the same list again does not read the object.
func (i Item[T]) MayHave(paths ...wire.Path) bool {
	if i.entry == nil {
		return false
	}
	return i.entry.mayHave(paths)
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
