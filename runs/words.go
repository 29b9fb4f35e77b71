// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import "strings"

// words numbers texts of which there are few: names of controllers, kinds, codes, paths of fields. Entries then have
// the number in place of the text. When words has no room, further texts stand in the entries.
type words struct {
	number map[string]uint32
	text   []string
	room   int // bytes that may still be used
}

// A text and its entries in the map and the list take some 80 bytes more than its bytes.
const wordOverhead = 80

// longestWord bounds the texts that are numbered, so that names which stand once do not use the room.
const longestWord = 200

func newWords(room int) *words { return &words{number: map[string]uint32{}, room: room} }

// numberOf returns the number of a text, or false if the text has to stand in the entry.
func (w *words) numberOf(s string) (uint32, bool) {
	if n, known := w.number[s]; known {
		return n, true
	}
	if len(s) > longestWord || w.room < len(s)+wordOverhead {
		return 0, false
	}
	w.room -= len(s) + wordOverhead
	s = strings.Clone(s) // it may be a part of a large one
	n := uint32(len(w.text))
	w.number[s] = n
	w.text = append(w.text, s)
	return n, true
}
