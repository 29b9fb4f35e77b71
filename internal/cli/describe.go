// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// describeName is the hidden command that prints a [Description] of all commands as JSON.
// Man pages are made of it. Its name begins with two underscores, as the commands for
// completions do, and as no name of a kind does.
const describeName = "__describe"

// Description is a command, its flags, and the commands below it.
type Description struct {
	Name     string            `json:"name"` // with the names of the commands above it
	Usage    string            `json:"usage"`
	Short    string            `json:"short"`
	Long     string            `json:"long"` // Short if there is no longer text
	Example  string            `json:"example,omitempty"`
	Flags    []FlagDescription `json:"flags,omitempty"`
	Commands []Description     `json:"commands,omitempty"`
}

// FlagDescription is a flag as the help shows it.
type FlagDescription struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand,omitempty"`
	Value     string `json:"value,omitempty"` // the name of its value; empty for a switch
	Default   string `json:"default,omitempty"`
	Usage     string `json:"usage"`
}

// Describe describes a command. Hidden commands and flags are left out, as in the help.
func Describe(c *cobra.Command) Description {
	d := Description{Name: c.CommandPath(), Usage: c.UseLine(), Short: c.Short, Long: c.Long, Example: c.Example}
	if d.Long == "" {
		d.Long = d.Short
	}
	c.InitDefaultHelpFlag()
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			d.Flags = append(d.Flags, describeFlag(f))
		}
	}
	c.NonInheritedFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			d.Commands = append(d.Commands, Describe(below))
		}
	}
	return d
}

func describeFlag(f *pflag.Flag) FlagDescription {
	value, usage := pflag.UnquoteUsage(f)
	d := FlagDescription{Name: f.Name, Shorthand: f.Shorthand, Value: value, Usage: usage}
	switch f.DefValue {
	case "", "false", "0", "0s", "[]": // what the help leaves out
	default:
		d.Default = f.DefValue
	}
	return d
}

// describeCommand prints the description of the commands of root.
func describeCommand(root *cobra.Command, out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:    describeName,
		Short:  "Print a description of all commands as JSON",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return json.NewEncoder(out).Encode(Describe(root)) },
	}
}
