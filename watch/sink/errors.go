// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
)

// FieldError says which field of options is wrong.
type FieldError struct {
	// Field is the way to it, in the words of the configuration: webhook.headers[0].name.
	Field string
	Err   error
}

// Error returns "webhook.url: names no host".
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the field.
func (e *FieldError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

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
