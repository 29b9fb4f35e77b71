// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"sigs.k8s.io/json"
)

// walker walks over the members of a JSON object that is there as a whole.
type walker struct {
	scan *scanner
	data []byte
	at   int    // where the present value begins, and behind it once it was read
	from int    // where the present member begins
	prev int    // where the member before it ends; 0 if there is none
	name []byte // of the present member
	some bool   // there was a member
	err  error
}

// walk begins to walk over the object at data[at].
func walk(scan *scanner, data []byte, at int) walker {
	m := walker{scan: scan, data: data, at: at}
	if m.peek() != '{' {
		m.fail("an object")
		return m
	}
	m.at++
	return m
}

// next goes to the next member, whose value the caller must have read when it calls
// again. It returns false at the end, at then being behind the object, and upon an
// error.
func (m *walker) next() bool {
	if m.err != nil {
		return false
	}
	end := m.at
	c := m.peek()
	if c == '}' {
		m.at++
		return false
	}
	if m.some {
		if c != ',' {
			return m.fail("a comma")
		}
		m.at++
		c = m.peek()
		m.prev = end
	}
	if c != '"' {
		return m.fail("a name")
	}
	m.from, m.some = m.at, true
	var ok bool
	if m.name, ok = m.text(); !ok {
		return m.fail("a name")
	}
	if m.peek() != ':' {
		return m.fail("a colon")
	}
	m.at++
	m.peek()
	return true
}

// peek passes over whitespace and returns what comes then; 0 at the end.
func (m *walker) peek() byte {
	for ; m.at < len(m.data); m.at++ {
		if c := m.data[m.at]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// end makes anything but whitespace an error.
func (m *walker) end() {
	if m.peek(); m.at < len(m.data) {
		m.fail("the end")
	}
}

func (m *walker) fail(want string) bool {
	if m.err == nil {
		m.err = fmt.Errorf("%w: want %s at byte %d", ErrMalformed, want, m.at)
	}
	return false
}

// skip passes over the value at hand and returns it.
func (m *walker) skip() []byte {
	value := m.data[m.at:]
	m.scan.reset()
	whole, err := m.scan.scan(value)
	if err != nil || !whole {
		m.fail("a value")
		return nil
	}
	m.at += m.scan.at
	return value[:m.scan.at]
}

// text reads a text. What it returns is part of the data, unless there are escapes
// in it or bytes that are no UTF-8.
func (m *walker) text() ([]byte, bool) {
	from := m.at
	end, open, ok := text(m.data, from+1)
	if open || !ok {
		return nil, false
	}
	m.at = end
	return unquote(m.data[from:end])
}

// unquote returns what a text says, as the decoders have it.
func unquote(quoted []byte) ([]byte, bool) {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner, true
	}
	var s string
	if err := json.UnmarshalCaseSensitivePreserveInts(quoted, &s); err != nil {
		return nil, false
	}
	return []byte(s), true
}

// textOrNull reads a text, or null, which is the empty text.
func (m *walker) textOrNull() []byte {
	switch m.peek() {
	case '"':
		value, ok := m.text()
		if !ok {
			m.fail("a text")
		}
		return value
	case 'n':
		m.null()
	default:
		m.fail("a text")
	}
	return nil
}

// null reads null, or fails.
func (m *walker) null() {
	if string(m.skip()) != "null" {
		m.fail("null")
	}
}

// elements reads an array with read, which reads one element. null and nothing are
// no array, which is nil.
func elements[T any](array []byte, read func(*walker) T) ([]T, error) {
	if len(array) == 0 || string(array) == "null" {
		return nil, nil
	}
	m := walker{scan: new(scanner), data: array}
	if m.peek() != '[' {
		m.fail("an array")
		return nil, m.err
	}
	m.at++
	list := []T{}
	if m.peek() == ']' {
		return list, nil
	}
	for m.err == nil {
		list = append(list, read(&m))
		switch m.peek() {
		case ']':
			return list, m.err
		case ',':
			m.at++
			m.peek()
		default:
			m.fail("a comma")
		}
	}
	return nil, m.err
}
