// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"hash/maphash"
	"strconv"
	"sync"
	"unicode/utf8"

	"sigs.k8s.io/json"
)

// decodeTree decodes a JSON object into maps, slices, strings, int64, float64, bool and nil,
// as apimachinery's decoder does. That decoder reports errors in bytes that are not JSON, and
// decodes what is rare.
//
// A program that compares states decodes two for every change. A profile of "setpoint watch"
// showed 43 % of its CPU in that decoder: a first pass for the grammar, reflection, and a
// string of its own for each name of a field. This one reads each byte once, and knows the
// names from the objects before.
func decodeTree(raw []byte) (map[string]any, error) {
	t, _ := trees.Get().(*treeReader)
	t.data, t.at = raw, 0
	tree, ok := t.whole()
	t.data = nil
	clear(t.elements) // of arrays that were not read to their end
	t.elements = t.elements[:0]
	trees.Put(t)
	if ok {
		return tree, nil
	}
	tree = nil
	err := json.UnmarshalCaseSensitivePreserveInts(raw, &tree)
	return tree, err
}

var trees = sync.Pool{New: func() any { return &treeReader{seed: maphash.MakeSeed()} }}

const (
	// treeNesting is how deep a tree may be nested here. Objects have some twenty levels.
	treeNesting = 200
	// knownLength is how long a text may be that is remembered, in bytes: names of fields,
	// and of values those that are words.
	knownLength = 48
	// knownNames and knownWords are how many of them are remembered, powers of two. A Pod
	// has 150 different names with those of its managedFields.
	knownNames = 1024
	knownWords = 1024
)

// treeReader decodes one value. Its methods return false for what it does not decode.
type treeReader struct {
	data     []byte
	at       int
	seed     maphash.Seed
	elements []any // of the arrays that are open
	text     []byte

	// Texts that were read before, each where its hash says. Whatever was read last is
	// there, so that texts that are never read again do not stay.
	names [knownNames]string
	words [knownWords]any // strings; as they are in a tree
}

// whole reads all bytes, which must be one object.
func (t *treeReader) whole() (map[string]any, bool) {
	if !t.next() || t.data[t.at] != '{' {
		return nil, false
	}
	tree, ok := t.object(0)
	return tree, ok && !t.next()
}

// next passes over whitespace, and reports whether something is behind it.
func (t *treeReader) next() bool {
	for t.at < len(t.data) {
		if tokenOf[t.data[t.at]] != spaceToken {
			return true
		}
		t.at++
	}
	return false
}

func (t *treeReader) value(depth int) (any, bool) {
	if !t.next() || depth > treeNesting {
		return nil, false
	}
	switch t.data[t.at] {
	case '{':
		return t.object(depth)
	case '[':
		return t.array(depth)
	case '"':
		inner, ok := t.quoted()
		if !ok {
			return nil, false
		}
		return t.word(inner), true
	}
	// A number is only whole with what comes behind it, which within an object is something.
	n, ok := scalar(t.data[t.at:])
	if !ok || n == 0 {
		return nil, false
	}
	from := t.at
	t.at += n
	switch t.data[from] {
	case 't':
		return true, true
	case 'f':
		return false, true
	case 'n':
		return nil, true
	}
	return numberOf(t.data[from:t.at])
}

// numberOf returns whole numbers as int64 and all others as float64. Whole ones that are too
// large are left to the other decoder, and with them any that would be out of range.
func numberOf(digits []byte) (any, bool) {
	if len(digits) > 64 {
		return nil, false
	}
	text := string(digits)
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

func (t *treeReader) object(depth int) (map[string]any, bool) {
	t.at++ // the brace
	tree := map[string]any{}
	if !t.next() {
		return nil, false
	}
	if t.data[t.at] == '}' {
		t.at++
		return tree, true
	}
	for {
		if !t.next() || t.data[t.at] != '"' {
			return nil, false
		}
		inner, ok := t.quoted()
		if !ok {
			return nil, false
		}
		name := t.name(inner)
		if !t.next() || t.data[t.at] != ':' {
			return nil, false
		}
		t.at++
		value, ok := t.value(depth + 1)
		if !ok || !t.next() {
			return nil, false
		}
		tree[name] = value
		t.at++
		switch t.data[t.at-1] {
		case ',':
		case '}':
			return tree, true
		default:
			return nil, false
		}
	}
}

func (t *treeReader) array(depth int) ([]any, bool) {
	t.at++ // the bracket
	if !t.next() {
		return nil, false
	}
	if t.data[t.at] == ']' {
		t.at++
		return []any{}, true
	}
	from := len(t.elements)
	for {
		value, ok := t.value(depth + 1)
		if !ok || !t.next() {
			return nil, false
		}
		t.elements = append(t.elements, value)
		t.at++
		switch t.data[t.at-1] {
		case ',':
		case ']':
			array := append(make([]any, 0, len(t.elements)-from), t.elements[from:]...)
			clear(t.elements[from:])
			t.elements = t.elements[:from]
			return array, true
		default:
			return nil, false
		}
	}
}

// quoted reads a text, whose opening quote is next. The result is good until the next text.
func (t *treeReader) quoted() ([]byte, bool) {
	from := t.at + 1
	n := plain(t.data[from:])
	t.at = from + n
	if t.at == len(t.data) {
		return nil, false
	}
	if t.data[t.at] == '"' {
		t.at++
		inner := t.data[from : from+n]
		return inner, utf8.Valid(inner)
	}
	return t.escaped(from)
}

// escaped is quoted, for a text with escapes.
func (t *treeReader) escaped(from int) ([]byte, bool) {
	t.text = append(t.text[:0], t.data[from:t.at]...)
	for t.at < len(t.data) {
		switch c := t.data[t.at]; c {
		case '"':
			t.at++
			return t.text, utf8.Valid(t.text)
		case '\\':
			n := escape(t.data[t.at:])
			if n <= 0 {
				return nil, false
			}
			if n == 2 {
				t.text = append(t.text, meant[t.data[t.at+1]])
			} else {
				code, err := strconv.ParseUint(string(t.data[t.at+2:t.at+6]), 16, 32)
				if err != nil || code >= 0xd800 && code < 0xe000 { // half of a character
					return nil, false
				}
				t.text = utf8.AppendRune(t.text, rune(code))
			}
			t.at += n
		default:
			n := plain(t.data[t.at:])
			if n == 0 { // a control character
				return nil, false
			}
			t.text = append(t.text, t.data[t.at:t.at+n]...)
			t.at += n
		}
	}
	return nil, false
}

// meant is what escapes of one letter mean.
var meant = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// name returns a text as a string, the same as before if it is known.
func (t *treeReader) name(text []byte) string {
	if len(text) > knownLength {
		return string(text)
	}
	known := &t.names[maphash.Bytes(t.seed, text)%knownNames]
	if *known != string(text) {
		*known = string(text)
	}
	return *known
}

// word is name, for a value.
func (t *treeReader) word(text []byte) any {
	if len(text) > knownLength {
		return string(text)
	}
	known := &t.words[maphash.Bytes(t.seed, text)%knownWords]
	if s, ok := (*known).(string); !ok || s != string(text) {
		*known = string(text)
	}
	return *known
}
