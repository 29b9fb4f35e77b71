// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/json"
)

// jsonReader reads a JSON document as a stream, one value at a time, and none
// larger than the limit. Its memory is one buffer, which holds what has arrived and
// was not handed out yet, and grows to the largest value.
type jsonReader struct {
	in     io.Reader
	limit  int
	buffer []byte
	at     int   // buffer[at:] is still to be read
	err    error // of in; returned once what arrived before it has been read
	scan   scanner
}

// newJSONReader reads from in with a buffer of size bytes, at first.
func newJSONReader(in io.Reader, limit, size int) *jsonReader {
	return &jsonReader{in: in, limit: limit, buffer: make([]byte, 0, size)}
}

// more waits for more bytes. The error of a body that ends is io.EOF.
func (r *jsonReader) more() error {
	if r.err != nil {
		return r.err
	}
	if len(r.buffer) == cap(r.buffer) {
		if r.at > 0 {
			r.buffer = r.buffer[:copy(r.buffer, r.buffer[r.at:])]
			r.at = 0
		} else {
			// A value that does not fit into this is too large. All of the buffer has
			// been read, except a number that may continue.
			size := max(min(2*cap(r.buffer), r.limit+2*maxNumber), cap(r.buffer)+maxNumber)
			r.buffer = append(make([]byte, 0, size), r.buffer...)
		}
	}
	const attempts = 100 // of a reader that returns nothing. Source: bufio
	for range attempts {
		var n int
		n, r.err = r.in.Read(r.buffer[len(r.buffer):cap(r.buffer)])
		r.buffer = r.buffer[:len(r.buffer)+n]
		if n > 0 {
			return nil
		}
		if r.err != nil {
			return r.err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// peek passes over whitespace and returns the byte that comes then.
func (r *jsonReader) peek() (byte, error) {
	for {
		for ; r.at < len(r.buffer); r.at++ {
			if c := r.buffer[r.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				return c, nil
			}
		}
		if err := r.more(); err != nil {
			return 0, err
		}
	}
}

// take reads one byte of the grammar.
func (r *jsonReader) take(want byte) error {
	c, err := r.peek()
	if err != nil {
		return unexpected(err)
	}
	if c != want {
		return fmt.Errorf("%w: want %q, have %q", ErrMalformed, want, c)
	}
	r.at++
	return nil
}

// value reads a value whole. It is valid until the next call.
func (r *jsonReader) value() ([]byte, error) {
	if _, err := r.peek(); err != nil {
		return nil, unexpected(err)
	}
	r.scan.reset()
	for {
		whole, err := r.scan.scan(r.buffer[r.at:])
		if err != nil {
			return nil, err
		}
		if r.scan.at > r.limit {
			return nil, fmt.Errorf("%w: limit %d", ErrTooLarge, r.limit)
		}
		if whole {
			value := r.buffer[r.at : r.at+r.scan.at]
			r.at += len(value)
			return value, nil
		}
		if err := r.more(); err != nil {
			return nil, unexpected(err)
		}
	}
}

// decode reads a value into into.
func (r *jsonReader) decode(into any) error {
	value, err := r.value()
	if err != nil {
		return err
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(value, into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// members reads an object and calls member with the name of each member, of which
// it reads the value.
func (r *jsonReader) members(member func(name string) error) error {
	return r.list('{', '}', func() error {
		if c, err := r.peek(); err == nil && c != '"' {
			return fmt.Errorf("%w: want a name, have %q", ErrMalformed, c)
		}
		var name string
		if err := r.decode(&name); err != nil {
			return err
		}
		if err := r.take(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// elements reads an array and calls element, which reads one.
func (r *jsonReader) elements(element func() error) error { return r.list('[', ']', element) }

// list reads what stands between two brackets, apart by commas.
func (r *jsonReader) list(opening, closing byte, each func() error) error {
	if err := r.take(opening); err != nil {
		return err
	}
	c, err := r.peek()
	if err != nil {
		return unexpected(err)
	}
	if c == closing {
		r.at++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		c, err := r.peek()
		if err != nil {
			return unexpected(err)
		}
		r.at++
		switch c {
		case closing:
			return nil
		case ',':
		default:
			return fmt.Errorf("%w: want a comma or %q, have %q", ErrMalformed, closing, c)
		}
	}
}

// end reads to the end of the body, where nothing may come but whitespace.
func (r *jsonReader) end() error {
	c, err := r.peek()
	if err == nil {
		return fmt.Errorf("%w: %q behind the end", ErrMalformed, c)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
