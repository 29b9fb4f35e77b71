// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	// maxNesting is how deep a value may be nested. The decoders take 10,000 levels
	// (source: encoding/json, from which those of apimachinery descend), and values
	// are scanned up to two levels below the object that they belong to.
	maxNesting = 10000 - 2
	// maxNumber is how long a number may be, in bytes. No decoder has such a limit,
	// and no number with a meaning comes near it; it lets a number be read in one
	// go once its end has arrived.
	maxNumber = 1024
)

// scanner finds the end of one JSON value in bytes that arrive piece by piece, and
// checks its grammar (RFC 8259) on the way. It looks at each byte once, and does not
// care where the pieces end. The zero scanner begins a value; whitespace before the
// value is part of it.
type scanner struct {
	at      int    // the bytes that were looked at
	state   state  // what may come there
	quoted  bool   // at is within a text
	nesting []byte // '{' or '[' for each container that is open
}

// state is what a scanner waits for.
type state uint8

const (
	wantValue state = iota
	wantFirstValue
	wantName
	wantFirstName
	wantColon
	wantComma // or the end of the container
)

func (s *scanner) reset() { *s = scanner{nesting: s.nesting[:0]} }

// scan looks at what has arrived of a value since the last call. data begins with
// the value, always. It returns true when the value is whole, and ends at s.at.
func (s *scanner) scan(data []byte) (whole bool, err error) {
	for s.at < len(data) {
		var ok bool
		if s.quoted {
			s.at, s.quoted, ok = text(data, s.at)
		} else {
			var n int
			if n, ok = s.token(data[s.at:]); ok && n == 0 {
				return false, nil
			}
			s.at += n
		}
		if !ok {
			return false, fmt.Errorf("%w: unexpected %q at byte %d of a value", ErrMalformed, data[s.at], s.at)
		}
		if s.state == wantComma && len(s.nesting) == 0 && !s.quoted {
			return true, nil
		}
	}
	return false, nil
}

// token takes what stands in front, of a text its opening quote only, and returns
// its length; 0 if it has not arrived whole. What may not stand there is not ok, and
// 0 bytes too.
func (s *scanner) token(data []byte) (n int, ok bool) {
	switch c := data[0]; c {
	case ' ', '\n', '\t', '\r':
		return 1, true
	case '"':
		switch s.state {
		case wantName, wantFirstName:
			s.state = wantColon
		case wantValue, wantFirstValue:
			s.state = wantComma
		default:
			return 0, false
		}
		s.quoted = true
		return 1, true
	case ':':
		if s.state != wantColon {
			return 0, false
		}
		s.state = wantValue
		return 1, true
	case ',':
		if s.state != wantComma {
			return 0, false
		}
		s.state = wantValue
		if s.nesting[len(s.nesting)-1] == '{' {
			s.state = wantName
		}
		return 1, true
	case '{', '[':
		return s.open(c)
	case '}', ']':
		return s.close(c)
	}
	if s.state > wantFirstValue {
		return 0, false
	}
	if n, ok = scalar(data); n > 0 {
		s.state = wantComma
	}
	return n, ok
}

func (s *scanner) open(c byte) (n int, ok bool) {
	if s.state > wantFirstValue || len(s.nesting) == maxNesting {
		return 0, false
	}
	s.nesting = append(s.nesting, c)
	s.state = wantFirstName
	if c == '[' {
		s.state = wantFirstValue
	}
	return 1, true
}

func (s *scanner) close(c byte) (n int, ok bool) {
	last := len(s.nesting) - 1
	if last < 0 {
		return 0, false
	}
	opening, first := byte('{'), wantFirstName
	if c == ']' {
		opening, first = '[', wantFirstValue
	}
	if s.nesting[last] != opening || s.state != wantComma && s.state != first {
		return 0, false
	}
	s.nesting = s.nesting[:last]
	s.state = wantComma
	return 1, true
}

// text reads the rest of a text from i on, to behind its closing quote. open is
// true if that has not arrived; end is then where to go on.
func text(data []byte, i int) (end int, open, ok bool) {
	for {
		i += plain(data[i:])
		if i == len(data) {
			return i, true, true
		}
		switch data[i] {
		case '"':
			return i + 1, false, true
		case '\\':
			n := escape(data[i:])
			if n <= 0 {
				return i, n == 0, n == 0
			}
			i += n
		default: // a control character
			return i, false, false
		}
	}
}

// plain counts the bytes in front that mean themselves within a text: neither
// quotes nor backslashes nor control characters. It looks at eight at a time.
func plain(data []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// The top bit of each byte that is below 0x20, or zero. Bytes above the
		// first hit may be wrong, the first is right.
		hit := ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// escape returns the length of the escape in front; 0 if it has not arrived whole
// and -1 if it is none.
func escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for i := 2; i < 6; i++ {
			if i == len(data) {
				return 0
			}
			if c := data[i] | 0x20; (data[i] < '0' || data[i] > '9') && (c < 'a' || c > 'f') {
				return -1
			}
		}
		return 6
	}
	return -1
}

// scalar returns the length of the number or the word in front; 0 if it has not
// arrived whole.
func scalar(data []byte) (n int, ok bool) {
	switch data[0] {
	case 't':
		return word(data, "true")
	case 'f':
		return word(data, "false")
	case 'n':
		return word(data, "null")
	}
	return number(data)
}

func word(data []byte, want string) (n int, ok bool) {
	if n = min(len(data), len(want)); string(data[:n]) != want[:n] {
		return 0, false
	}
	if n < len(want) {
		return 0, true
	}
	return n, true
}

// number reads a number, of which the end is only known by what comes behind it.
func number(data []byte) (n int, ok bool) {
	i := 0
	if data[0] == '-' {
		i++
	}
	start := i
	i += digits(data[i:])
	ok = i > start && (data[start] != '0' || i == start+1)
	if ok && i < len(data) && data[i] == '.' {
		fraction := digits(data[i+1:])
		i += 1 + fraction
		ok = fraction > 0
	}
	if ok && i < len(data) && data[i]|0x20 == 'e' {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		exponent := digits(data[i:])
		i += exponent
		ok = exponent > 0
	}
	switch {
	case i == len(data):
		return 0, i <= maxNumber
	case !ok:
		return 0, false
	}
	return i, true
}

func digits(data []byte) int {
	i := 0
	for i < len(data) && data[i] >= '0' && data[i] <= '9' {
		i++
	}
	return i
}
