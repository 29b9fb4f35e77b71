// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// hidden is what is printed in the place of a secret.
const hidden = "(secret)"

// Secret is a value that must not be printed: whichever way it is formatted, logged or
// encoded, "(secret)" comes out. Reveal returns the value. The zero Secret is none.
//
// The value is behind a pointer, because fmt prints the unexported fields of a struct around a
// Secret without calling its methods.
type Secret struct{ value *string }

// NewSecret returns a Secret of a value.
func NewSecret(value string) Secret { return Secret{&value} }

// Reveal returns the value.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether there is no value.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String does not return the value.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return hidden
}

// GoString does not return the value.
func (s Secret) GoString() string { return s.String() }

// Format prints as String for each verb. Without it, fmt would print the value for a verb
// that is wrong for it.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue does not return the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText does not return the value: what is written of options cannot be read back.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes a value from YAML or JSON.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// SecretRef says where a secret is: in a file, or in an environment variable. This package
// reads neither; [Deps].Secret does.
type SecretRef struct {
	// File is a path. What is in the file is the secret, without white space at its end.
	File string `yaml:"file,omitempty"`
	// Env is the name of an environment variable.
	Env string `yaml:"env,omitempty"`
}

// IsZero reports whether it names nothing.
func (r SecretRef) IsZero() bool { return r == SecretRef{} }

// String says where the secret is, in the words of an error.
func (r SecretRef) String() string {
	switch {
	case r.File != "":
		return "file " + r.File
	case r.Env != "":
		return "environment variable " + r.Env
	default:
		return "nowhere"
	}
}

// check returns an error for a reference that names nothing, or two things.
func (r SecretRef) check() error {
	switch {
	case r.File == "" && r.Env == "":
		return errors.New("names neither a file nor an environment variable: set file or env")
	case r.File != "" && r.Env != "":
		return errors.New("names a file and an environment variable: set file or env, not both")
	}
	return nil
}
