// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Labels is a set of labels, written as one string: for each label, in the order
// of their keys, the length of the key, the key, the length of the value and the
// value, lengths as unsigned varints. The zero Labels has none.
//
// A cluster holds few different sets of labels and many objects that bear them,
// so the form is made for being kept: it costs its own bytes and no map, two sets
// are equal if the strings are, and looking for a key reads the set from its
// start, which for the dozen labels that an object has is as quick as a map. Make
// one with [LabelsOf] or [AppendLabel]; its methods take other strings for what
// they can be read as, and never panic.
//
// Labels is a labels.Labels of apimachinery: selector.Matches(labels) works.
type Labels string

// LabelsOf returns the set that a map holds.
func LabelsOf(m map[string]string) Labels {
	if len(m) == 0 {
		return ""
	}
	keys := make([]string, 0, len(m))
	size := 0
	for k, v := range m {
		keys = append(keys, k)
		size += len(k) + len(v) + 2
	}
	slices.Sort(keys)
	b := make([]byte, 0, size)
	for _, k := range keys {
		b = AppendLabel(b, k, m[k])
	}
	return Labels(b)
}

// AppendLabel writes one label behind others. The caller appends each key once,
// in ascending order.
func AppendLabel[S ~string | ~[]byte](b []byte, key, value S) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// All returns the labels in the order of their keys.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for rest := string(l); rest != ""; {
			key, value, left, ok := nextLabel(rest)
			if !ok || !yield(key, value) {
				return
			}
			rest = left
		}
	}
}

// nextLabel reads the first label of a set.
func nextLabel(s string) (key, value, rest string, ok bool) {
	if key, s, ok = nextText(s); ok {
		value, rest, ok = nextText(s)
	}
	return key, value, rest, ok
}

func nextText(s string) (text, rest string, ok bool) {
	var size uint64
	for i := 0; i < len(s) && i < binary.MaxVarintLen32; i++ {
		size |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			if s = s[i+1:]; size > uint64(len(s)) {
				return "", "", false
			}
			return s[:size], s[size:], true
		}
	}
	return "", "", false
}

// Lookup returns the value of a label and whether the set has it.
func (l Labels) Lookup(key string) (value string, exists bool) {
	for rest := string(l); rest != ""; {
		k, v, left, ok := nextLabel(rest)
		if !ok || k > key {
			return "", false
		}
		if k == key {
			return v, true
		}
		rest = left
	}
	return "", false
}

// Has reports whether the set has a label.
func (l Labels) Has(key string) bool {
	_, exists := l.Lookup(key)
	return exists
}

// Get returns the value of a label, or "".
func (l Labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Len returns the number of labels.
func (l Labels) Len() int {
	n := 0
	for range l.All() {
		n++
	}
	return n
}

// Map returns the labels as a map of the caller's own; nil if there are none.
func (l Labels) Map() map[string]string {
	if l == "" {
		return nil
	}
	return maps.Collect(l.All())
}

// String returns "app=web,tier=front".
func (l Labels) String() string {
	var b strings.Builder
	for k, v := range l.All() {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(v)
	}
	return b.String()
}
