// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonReader reads a JSON document as a stream, one value at a time, and none
// larger than the limit.
type jsonReader struct {
	budget *budget
	in     *json.Decoder
	raw    json.RawMessage // reused
}

// budget stops a reader that asks for too much at once: encoding/json gathers a
// value whole before it hands it out, however long it is.
type budget struct {
	in    io.Reader
	limit int
	left  int
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: limit %d", ErrTooLarge, b.limit)
	}
	if len(p) > b.left {
		p = p[:b.left]
	}
	n, err := b.in.Read(p)
	b.left -= n
	return n, err
}

func newJSONReader(in io.Reader, limit int) *jsonReader {
	b := &budget{in: in, limit: limit, left: limit}
	return &jsonReader{budget: b, in: json.NewDecoder(b)}
}

// refill is called before each value: the limit is one value's.
func (r *jsonReader) refill() { r.budget.left = r.budget.limit }

func (r *jsonReader) more() bool { r.refill(); return r.in.More() }

func (r *jsonReader) delim(want json.Delim) error {
	r.refill()
	token, err := r.in.Token()
	if err != nil {
		return malformed(err)
	}
	if token != want {
		return fmt.Errorf("%w: want %v, have %v", ErrMalformed, want, token)
	}
	return nil
}

func (r *jsonReader) name() (string, error) {
	r.refill()
	token, err := r.in.Token()
	if err != nil {
		return "", malformed(err)
	}
	name, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("%w: want a name, have %v", ErrMalformed, token)
	}
	return name, nil
}

func (r *jsonReader) value(into any) error {
	r.refill()
	if err := r.in.Decode(into); err != nil {
		return fmt.Errorf("reading list: %w", malformed(err))
	}
	return nil
}

// each reads an array, or null, and calls item with each element.
func (r *jsonReader) each(item func([]byte) error) error {
	r.refill()
	token, err := r.in.Token()
	if err != nil {
		return fmt.Errorf("reading list: %w", malformed(err))
	}
	if token == nil {
		return nil // "items": null is an empty list
	}
	if token != json.Delim('[') {
		return fmt.Errorf("reading list: %w: items is no array", ErrMalformed)
	}
	for r.more() {
		if err := r.value(&r.raw); err != nil {
			return err
		}
		if err := item(r.raw); err != nil {
			return err
		}
	}
	if err := r.delim(']'); err != nil {
		return fmt.Errorf("reading list: %w", err)
	}
	return nil
}

// skipped takes any value and keeps none of it.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// malformed marks syntax errors; errors of the transport stay what they are.
func malformed(err error) error {
	err = unexpected(err)
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, kind := errors.AsType[*json.UnmarshalTypeError](err); kind {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return err
}
