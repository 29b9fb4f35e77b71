// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// Flag is a flag that sets an option. Name, meaning, default and bounds are those of
// kube-controller-manager.
type Flag struct {
	Name, Usage string

	// Into is where the value goes, and what stands there at first is the default: a *bool, a
	// *string, a *time.Duration, or a *int or *float64, which a command line has in 32 bits.
	Into any

	// Switch says that the flag sets no option: with false the controller does not run.
	Switch bool

	least, most *int64             // that Check accepts
	checkText   func(string) error // what is wrong with a text
	stopsAtZero bool
}

// Bool returns a flag for an option that is on or off.
func Bool(name string, into *bool, usage string) Flag {
	return Flag{Name: name, Into: into, Usage: usage}
}

// Int returns a flag for a number.
func Int(name string, into *int, usage string) Flag {
	return Flag{Name: name, Into: into, Usage: usage}
}

// Float returns a flag for a number with a fraction.
func Float(name string, into *float64, usage string) Flag {
	return Flag{Name: name, Into: into, Usage: usage}
}

// String returns a flag for a text.
func String(name string, into *string, usage string) Flag {
	return Flag{Name: name, Into: into, Usage: usage}
}

// Duration returns a flag for a time.
func Duration(name string, into *time.Duration, usage string) Flag {
	return Flag{Name: name, Into: into, Usage: usage}
}

// Switch returns a flag that is true by default, and false to have the controller not run.
func Switch(name, usage string) Flag {
	return Flag{Name: name, Into: new(true), Usage: usage, Switch: true}
}

// Enabling returns a flag that is false by default, and true to have the controller run.
func Enabling(name, usage string) Flag {
	return Flag{Name: name, Usage: usage, Into: new(false), Switch: true}
}

// Text returns a flag for a text.
func Text(name string, into *string, usage string) Flag {
	return Flag{Name: name, Into: into, Usage: usage}
}

// Checked has [Flag.Check] refuse the texts about which check returns an error. The error says
// what is wanted.
func (f Flag) Checked(check func(string) error) Flag {
	f.checkText = check
	return f
}

// AtLeast has [Flag.Check] refuse less than n, which is nanoseconds for a time.
func (f Flag) AtLeast(n int64) Flag {
	f.least = &n
	return f
}

// Between has [Flag.Check] refuse what is not between two numbers, or one of them.
func (f Flag) Between(least, most int64) Flag {
	f.least, f.most = &least, &most
	return f
}

// StopsAtZero has the controller not run with 0 or less.
func (f Flag) StopsAtZero() Flag {
	f.stopsAtZero = true
	return f
}

// Check returns what is wrong with the value.
func (f Flag) Check() error {
	if text, ok := f.Into.(*string); ok && f.checkText != nil {
		if err := f.checkText(*text); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		return nil
	}
	switch {
	case f.most != nil && (f.compare(*f.least) < 0 || f.compare(*f.most) > 0):
		return fmt.Errorf("%s: want %s to %s", f, f.text(*f.least), f.text(*f.most))
	case f.least != nil && f.compare(*f.least) < 0:
		return fmt.Errorf("%s: want %s or more", f, f.text(*f.least))
	}
	return nil
}

// String returns the flag as it is written on a command line.
func (f Flag) String() string { return fmt.Sprintf("--%s=%v", f.Name, reflect.ValueOf(f.Into).Elem()) }

// compare returns -1, 0 or 1 for a value that is less than a bound, equal, or greater. What is
// no number is less than all.
func (f Flag) compare(bound int64) int {
	switch v := f.Into.(type) {
	case *time.Duration:
		return cmp.Compare(int64(*v), bound)
	case *float64:
		return cmp.Compare(*v, float64(bound))
	case *int:
		return cmp.Compare(int64(*v), bound)
	}
	return -1
}

// text returns a bound as a value is written.
func (f Flag) text(bound int64) string {
	if _, ok := f.Into.(*time.Duration); ok {
		return time.Duration(bound).String()
	}
	return strconv.FormatInt(bound, 10)
}

// stops reports whether the value keeps the controller from running.
func (f Flag) stops() bool {
	if f.Switch {
		on, ok := f.Into.(*bool)
		return ok && !*on
	}
	return f.stopsAtZero && f.compare(0) <= 0
}
