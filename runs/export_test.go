// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import "time"

// Decode decodes an entry with some words.
func Decode(entry []byte, words []string) (Run, error) { return decode(entry, words) }

// Entries returns the encoded entries of a record, and their words.
func (r *Record) Entries() (entries [][]byte, words []string) {
	kept, _ := r.allEntries(r.kept, time.Time{})
	idle, words := r.allEntries(r.idle, time.Time{})
	return append(kept, idle...), words
}
