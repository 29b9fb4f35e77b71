// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"

	"go.etcd.io/bbolt"
)

// view runs f in a transaction that reads. Nothing that it gets may be kept.
func (j *Journal) view(f func(tx *bbolt.Tx) error) error {
	j.opened.RLock()
	defer j.opened.RUnlock()
	switch {
	case j.closed:
		return ErrClosed
	case j.db == nil:
		return fmt.Errorf("the journal %s could not be opened again after it failed: %w", j.path, j.broken)
	}
	if err := contain(func() error { return j.db.View(f) }); err != nil {
		return j.explain("reading it", err)
	}
	return nil
}

// update runs f in a transaction that writes.
func update(db *bbolt.DB, f func(tx *bbolt.Tx) error) error {
	return contain(func() error { return db.Update(f) })
}
