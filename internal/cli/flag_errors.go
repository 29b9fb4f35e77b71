// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// Explaining is a value of a flag whose own errors explain what it accepts.
type Explaining interface{ ExplainsItself() }

// ExplainFlagErrors makes a command take "_" for "-" in the names of flags, as the commands
// of Kubernetes do, and explain what is wrong with a flag. missing returns why a flag of
// similar commands does not exist, in words that follow its name; it may be nil.
func ExplainFlagErrors(c *cobra.Command, missing func(name string) (why string, ok bool)) {
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(dashed(name))
	})
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if e, ok := errors.AsType[*pflag.NotExistError](err); ok && e.GetSpecifiedShortnames() == "" {
			return unknownFlag(dashed(e.GetSpecifiedName()), c.Flags(), missing)
		} else if ok {
			return unknownShorthand(e.GetSpecifiedName(), c.Flags(), missing)
		}
		if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return wrongValue(e.GetFlag(), e.GetValue(), e.Unwrap())
		}
		return err
	})
}

// unknownFlag is the error for a flag that is not there.
func unknownFlag(name string, flags *pflag.FlagSet, missing func(string) (string, bool)) error {
	if missing != nil {
		if why, ok := missing(name); ok {
			return fmt.Errorf("--%s %s", name, why)
		}
	}
	return fmt.Errorf("there is no flag --%s%s", name, nearest.Question("--%s", name, FlagNames(flags)))
}

// unknownShorthand is the error for a flag of one letter that is not there. The flag that was meant
// is the only one that begins with the letter, if there is one.
func unknownShorthand(letter string, flags *pflag.FlagSet, missing func(string) (string, bool)) error {
	if missing != nil {
		if why, ok := missing(letter); ok {
			return fmt.Errorf("-%s %s", letter, why)
		}
	}
	begin := slices.DeleteFunc(FlagNames(flags), func(name string) bool { return !strings.HasPrefix(name, letter) })
	if len(begin) == 1 {
		return fmt.Errorf("there is no flag -%s; did you mean --%s?", letter, begin[0])
	}
	return fmt.Errorf("there is no flag -%s", letter)
}

func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

// FlagNames are those of a set.
func FlagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// wrongValue returns the error with what a flag accepts.
func wrongValue(f *pflag.Flag, text string, why error) error {
	if _, itself := f.Value.(Explaining); itself {
		return fmt.Errorf("--%s=%s: %w", f.Name, text, why)
	}
	if want := Wants(f.Value.Type()); want != "" {
		return fmt.Errorf("--%s=%s: want %s", f.Name, text, want)
	}
	return fmt.Errorf("--%s=%s: %w", f.Name, text, why)
}

// Wants describes the values of a type of pflag's, or is empty.
func Wants(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "int", "int32", "count":
		return "a whole number, such as 5"
	case "float32", "float64":
		return "a number, such as 0.1"
	case "duration":
		return "a time with its unit, such as 50s, 5m or 1h30m"
	case "ip":
		return "an IP address, such as 127.0.0.1"
	}
	return ""
}
