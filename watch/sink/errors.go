// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"time"
)

// FieldError says which field of options is wrong.
type FieldError struct {
	// Field is the path of the field, in the keys of the configuration: webhook.headers[0].name.
	Field string
	Err   error
}

// Error returns "webhook.url: names no host".
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the field.
func (e *FieldError) Unwrap() error { return e.Err }

// within says that what is wrong is in a field.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	if inner := (*FieldError)(nil); errors.As(err, &inner) {
		return &FieldError{Field: field + "." + inner.Field, Err: inner.Err}
	}
	return &FieldError{Field: field, Err: err}
}

// reporter collects the mistakes in a part of options.
type reporter struct {
	path  string
	found *[]*FieldError
}

// in returns a reporter for a field.
func (r reporter) in(field string) reporter {
	if r.path != "" {
		field = r.path + "." + field
	}
	return reporter{field, r.found}
}

// wrong reports what is wrong with a field.
func (r reporter) wrong(field, format string, args ...any) {
	r.failed(field, fmt.Errorf(format, args...))
}

// failed reports an error of a field, if there is one.
func (r reporter) failed(field string, err error) {
	if err != nil {
		*r.found = append(*r.found, &FieldError{Field: r.in(field).path, Err: err})
	}
}

func notNegative[T int | time.Duration](r reporter, field string, v T) {
	if v < 0 {
		r.wrong(field, "%v is negative", v)
	}
}
