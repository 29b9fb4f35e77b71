// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// describeName is the argument that has the program print its description, of which the man page
// is made. No package has such a name.
const describeName = "__describe"

// description is the command as the man pages need it. The programs of the root module print
// theirs by the package internal/cli, which this module does not require.
type description struct {
	Name    string            `json:"name"`
	Usage   string            `json:"usage"`
	Short   string            `json:"short"`
	Long    string            `json:"long"`
	Example string            `json:"example"`
	Flags   []flagDescription `json:"flags"`
}

type flagDescription struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand,omitempty"`
	Value     string `json:"value,omitempty"` // the name of its value; empty for a switch
	Default   string `json:"default,omitempty"`
	Usage     string `json:"usage"`
}

// describe writes the description of a command as JSON.
func describe(c *cobra.Command, out io.Writer) error {
	d := description{Name: c.CommandPath(), Usage: c.UseLine(), Short: c.Short, Long: c.Long, Example: c.Example}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		flag := flagDescription{Name: f.Name, Shorthand: f.Shorthand, Value: value, Default: f.DefValue, Usage: usage}
		if value == "" { // the default of a switch is off
			flag.Default = ""
		}
		d.Flags = append(d.Flags, flag)
	})
	return json.NewEncoder(out).Encode(d)
}
