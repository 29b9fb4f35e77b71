// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
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

	least, most *int64 // that Check accepts
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

// Duration returns a flag for a time.
func Duration(name string, into *time.Duration, usage string) Flag {
	return Flag{Name: name, Into: into, Usage: usage}
}

// Switch returns a flag that is true by default, and false to have the controller not run.
func Switch(name, usage string) Flag {
	return Flag{Name: name, Into: new(true), Usage: usage, Switch: true}
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
	n, text := f.number()
	switch {
	case f.most != nil && (n < *f.least || n > *f.most):
		return fmt.Errorf("%s: want %s to %s", f, text(*f.least), text(*f.most))
	case f.least != nil && n < *f.least:
		return fmt.Errorf("%s: want %s or more", f, text(*f.least))
	}
	return nil
}

// String returns the flag as it is written on a command line.
func (f Flag) String() string { return fmt.Sprintf("--%s=%v", f.Name, reflect.ValueOf(f.Into).Elem()) }

// number returns the value of a flag that can have bounds, and how such a value is written.
func (f Flag) number() (n int64, text func(int64) string) {
	if d, ok := f.Into.(*time.Duration); ok {
		return int64(*d), func(n int64) string { return time.Duration(n).String() }
	}
	if i, ok := f.Into.(*int); ok {
		n = int64(*i)
	}
	return n, func(n int64) string { return strconv.FormatInt(n, 10) }
}

// stops reports whether the value keeps the controller from running.
func (f Flag) stops() bool {
	if f.Switch {
		on, ok := f.Into.(*bool)
		return ok && !*on
	}
	n, _ := f.number()
	return f.stopsAtZero && n <= 0
}
