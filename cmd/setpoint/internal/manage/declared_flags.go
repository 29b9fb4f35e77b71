// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers"
)

// declare makes a flag of the command line of one that a controller declares.
func declare(flags *pflag.FlagSet, f controllers.Flag) {
	switch into := f.Into.(type) {
	case *bool:
		flags.BoolVar(into, f.Name, *into, f.Usage)
	case *string:
		flags.StringVar(into, f.Name, *into, f.Usage)
	case *time.Duration:
		flags.DurationVar(into, f.Name, *into, f.Usage)
	case *int:
		flags.Var((*int32Value)(into), f.Name, f.Usage)
	case *float64:
		flags.Var((*float32Value)(into), f.Name, f.Usage)
	case pflag.Value:
		flags.Var(into, f.Name, f.Usage)
	default:
		panic(fmt.Sprintf("--%s is a %T, of which there are no flags", f.Name, into))
	}
}

// int32Value is a number that upstream keeps in 32 bits: no more are accepted.
type int32Value int

// String implements pflag.Value.
func (v *int32Value) String() string { return strconv.Itoa(int(*v)) }

// Type implements pflag.Value.
func (v *int32Value) Type() string { return "int32" }

// Set implements pflag.Value.
func (v *int32Value) Set(text string) error {
	n, err := strconv.ParseInt(text, 0, 32)
	if err != nil {
		return err
	}
	*v = int32Value(n)
	return nil
}

// float32Value is a number that upstream keeps in 32 bits: greater ones are refused. It is as
// exact as it is written nevertheless, so that 0.55 is the share of 11 in 20.
type float32Value float64

// String implements pflag.Value.
func (v *float32Value) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

// Type implements pflag.Value.
func (v *float32Value) Type() string { return "float32" }

// Set implements pflag.Value.
func (v *float32Value) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 32); err != nil {
		return err
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	*v = float32Value(n)
	return nil
}
