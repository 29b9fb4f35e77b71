// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

// ControllersFlag adds the flag --controllers.
func ControllersFlag(c *cobra.Command, into *[]string) {
	c.Flags().StringSliceVar(into, "controllers", []string{"*"}, "controllers to run: '*' is all but those that have to be named, NAME is that one, -NAME is without that one")
	var known []string
	for _, d := range registry.Known() {
		known = append(known, d.Name+"\t"+d.Summary)
	}
	_ = c.RegisterFlagCompletionFunc("controllers", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// ControllerHelp lists the controllers, for a help text.
func ControllerHelp() string {
	var text strings.Builder
	text.WriteString("The controllers are")
	for _, d := range registry.Known() {
		text.WriteString("\n  " + d.Name + ": " + d.Summary)
	}
	return text.String()
}
