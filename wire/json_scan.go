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

// scanner finds the end of one JSON value in bytes that arrive piece by piece, and checks
// its grammar (RFC 8259) on the way. It reads each byte once, wherever the pieces end.
// The zero scanner begins a value; whitespace before the value is part of it.
type scanner struct {
	at     int     // the bytes that were read
	state  state   // what may come there
	quoted bool    // at is within a text; state is for behind it
	outer  []state // for each container that is open: what may come behind it
}

// state says what may come next.
type state uint8

const (
	wantValue        state = iota // the value itself
	wantNothing                   // it has ended
	wantName                      // in an object: a name,
	wantNameOrEnd                 // the first name or the end,
	wantColon                     // a colon,
	wantMember                    // the value of a member,
	afterMember                   // a comma or the end
	wantElement                   // in an array: an element,
	wantElementOrEnd              // the first element or the end,
	afterElement                  // a comma or the end
	afterContainer                // what was remembered when the container began
	states
)

// token is what a byte outside of texts begins.
type token uint8

const (
	scalarToken token = iota // a number, true, false, null; or nothing that JSON has
	spaceToken
	textToken
	colonToken
	commaToken
	objectToken
	objectEndToken
	arrayToken
	arrayEndToken
	tokens
)

var tokenOf = [256]token{
	' ': spaceToken, '\t': spaceToken, '\n': spaceToken, '\r': spaceToken,
	'"': textToken, ':': colonToken, ',': commaToken, '{': objectToken, '}': objectEndToken, '[': arrayToken, ']': arrayEndToken,
}

// grammar says what may come behind a token; behind one that begins a container,
// what may come behind the container. What it does not have is no JSON.
var grammar = [states][tokens]state{
	wantValue:        {scalarToken: wantNothing, textToken: wantNothing, objectToken: wantNothing, arrayToken: wantNothing},
	wantName:         {textToken: wantColon},
	wantNameOrEnd:    {textToken: wantColon, objectEndToken: afterContainer},
	wantColon:        {colonToken: wantMember},
	wantMember:       {scalarToken: afterMember, textToken: afterMember, objectToken: afterMember, arrayToken: afterMember},
	afterMember:      {commaToken: wantName, objectEndToken: afterContainer},
	wantElement:      {scalarToken: afterElement, textToken: afterElement, objectToken: afterElement, arrayToken: afterElement},
	wantElementOrEnd: {scalarToken: afterElement, textToken: afterElement, objectToken: afterElement, arrayToken: afterElement, arrayEndToken: afterContainer},
	afterElement:     {commaToken: wantElement, arrayEndToken: afterContainer},
}

// within says what may come first within a container.
var within = [tokens]state{objectToken: wantNameOrEnd, arrayToken: wantElementOrEnd}

func (s *scanner) reset() { *s = scanner{outer: s.outer[:0]} }

// scan reads what has arrived of a value since the last call. data always begins with the
// value. It returns true when the value is whole, and ends at s.at.
func (s *scanner) scan(data []byte) (whole bool, err error) {
	at, state := s.at, s.state // in registers: this loop is what reading JSON costs
	if s.quoted {
		end, open, ok := text(data, at)
		if at = end; !ok {
			return false, wrong(data, at)
		}
		s.at, s.quoted = at, open
		if open || state == wantNothing {
			return !open, nil
		}
	}
	for at < len(data) {
		token := tokenOf[data[at]]
		if token == spaceToken {
			at++
			continue
		}
		next := grammar[state][token]
		if next == wantValue {
			return false, wrong(data, at)
		}
		switch token {
		case textToken:
			end, open, ok := text(data, at+1)
			if !ok {
				return false, wrong(data, end)
			}
			if at = end; open {
				s.at, s.state, s.quoted = at, next, true
				return false, nil
			}
		case scalarToken:
			n, ok := scalar(data[at:])
			if !ok {
				return false, wrong(data, at)
			}
			if n == 0 {
				s.at, s.state = at, state
				return false, nil
			}
			at += n
		case objectToken, arrayToken:
			if len(s.outer) == maxNesting {
				return false, wrong(data, at)
			}
			s.outer = append(s.outer, next)
			next = within[token]
			at++
		case objectEndToken, arrayEndToken:
			last := len(s.outer) - 1
			next, s.outer = s.outer[last], s.outer[:last]
			at++
		default:
			at++
		}
		if state = next; state == wantNothing {
			s.at = at
			return true, nil
		}
	}
	s.at, s.state = at, state
	return false, nil
}

func wrong(data []byte, at int) error {
	return fmt.Errorf("%w: unexpected %q at byte %d of a value", ErrMalformed, data[at], at)
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

// plain counts the bytes in front that mean themselves within a text: neither quotes nor
// backslashes nor control characters. It reads eight at a time.
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
