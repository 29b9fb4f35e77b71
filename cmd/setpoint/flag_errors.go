// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// ofKubeControllerManager has a command understand flags as kube-controller-manager does,
// "_" being "-" in their names, and say what is wrong with one.
func ofKubeControllerManager(c *cobra.Command) {
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if e, ok := errors.AsType[*pflag.NotExistError](err); ok && e.GetSpecifiedShortnames() == "" {
			return unknownFlag(e.GetSpecifiedName(), c.Flags())
		}
		if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return wrongValue(e.GetFlag(), e.GetValue(), e.Unwrap())
		}
		return err
	})
}

// unknownFlag is the error for a flag that is not there.
func unknownFlag(name string, flags *pflag.FlagSet) error {
	name = strings.ReplaceAll(name, "_", "-")
	if why, missing := missingFlags()[name]; missing {
		return fmt.Errorf("--%s %s", name, why)
	}
	return fmt.Errorf("there is no flag --%s; did you mean --%s?", name, nearest.Name(name, flagNames(flags)))
}

// flagNames are those of a set.
func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// wrongValue says what a flag wants. Flags of types of ours say it themselves.
func wrongValue(f *pflag.Flag, text string, why error) error {
	if _, ours := f.Value.(*fixed); ours {
		return fmt.Errorf("--%s=%s: %w", f.Name, text, why)
	}
	if want := wants(f.Value.Type()); want != "" {
		return fmt.Errorf("--%s=%s: want %s", f.Name, text, want)
	}
	return fmt.Errorf("--%s=%s: %w", f.Name, text, why)
}

// wants describes the values of a type of pflag's, or is empty.
func wants(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "int", "count":
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
