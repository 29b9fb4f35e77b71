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
	t.open(raw)
	tree, ok := t.whole()
	t.close()
	trees.Put(t)
	if ok {
		return tree, nil
	}
	tree = nil
	err := json.UnmarshalCaseSensitivePreserveInts(raw, &tree)
	return tree, err
}

var trees = sync.Pool{New: func() any { return &treeReader{treeTexts: newTreeTexts()} }}

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
	*treeTexts

	data     []byte
	at       int
	elements []any // of the arrays that are open
	text     []byte
}

// treeTexts are texts that were read before, each where its hash says. Whatever was read last is
// there, so that texts that are never read again do not stay.
type treeTexts struct {
	seed  maphash.Seed
	names [knownNames]string
	words [knownWords]any // strings; as they are in a tree
}

func newTreeTexts() *treeTexts { return &treeTexts{seed: maphash.MakeSeed()} }

// open begins to read these bytes.
func (t *treeReader) open(raw []byte) { t.data, t.at = raw, 0 }

// close forgets what was read, so that a reader that waits for the next bytes keeps nothing of these.
func (t *treeReader) close() {
	t.data = nil
	clear(t.elements) // of arrays that were not read to their end
	t.elements = roomOf(t.elements)
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
	tree := map[string]any{}
	some, ok := t.enter('}')
	return tree, ok && t.members(tree, some, depth)
}

// enter goes into the container that is next, and reports whether it has anything.
func (t *treeReader) enter(end byte) (some, ok bool) {
	t.at++ // the brace or the bracket
	if !t.next() {
		return false, false
	}
	if t.data[t.at] == end {
		t.at++
		return false, true
	}
	return true, true
}

// more goes to what comes next in a container, behind a value of it, and reports whether there is anything.
func (t *treeReader) more(end byte) (some, ok bool) {
	if !t.next() {
		return false, false
	}
	t.at++
	switch t.data[t.at-1] {
	case ',':
		return true, t.next()
	case end:
		return false, true
	}
	return false, false
}

// member reads the name of a member and the colon.
func (t *treeReader) member() (name string, ok bool) {
	if t.data[t.at] != '"' {
		return "", false
	}
	inner, ok := t.quoted()
	if !ok {
		return "", false
	}
	name = t.name(inner)
	if !t.next() || t.data[t.at] != ':' {
		return "", false
	}
	t.at++
	return name, true
}

// members reads into a tree the members that are left, if there are some.
func (t *treeReader) members(tree map[string]any, some bool, depth int) (ok bool) {
	for ok = true; some && ok; {
		var name string
		if name, ok = t.member(); !ok {
			return false
		}
		var value any
		if value, ok = t.value(depth + 1); !ok {
			return false
		}
		tree[name] = value
		some, ok = t.more('}')
	}
	return ok
}

func (t *treeReader) array(depth int) ([]any, bool) {
	from := len(t.elements)
	some, ok := t.enter(']')
	if !ok || !t.rest(some, depth) {
		return nil, false
	}
	return t.taken(from), true
}

// rest reads the elements that are left of an array, if there are some.
func (t *treeReader) rest(some bool, depth int) (ok bool) {
	for ok = true; some && ok; {
		var value any
		if value, ok = t.value(depth + 1); !ok {
			return false
		}
		t.elements = append(t.elements, value)
		some, ok = t.more(']')
	}
	return ok
}

// taken returns the elements of an array that was read.
func (t *treeReader) taken(from int) []any {
	array := append(make([]any, 0, len(t.elements)-from), t.elements[from:]...)
	t.drop(from)
	return array
}

// drop takes back the elements of an array.
func (t *treeReader) drop(from int) {
	clear(t.elements[from:])
	t.elements = t.elements[:from]
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
