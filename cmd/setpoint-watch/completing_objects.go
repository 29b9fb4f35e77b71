// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/completion"
)

// completeArguments completes kinds, and names of objects after them: as in "deploy web" and
// deploy/web.
func (r *runCommand) completeArguments(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	kinds := completion.Listed(r.cluster().Kinds)
	objects := func(kinds ...string) []string { return r.cluster().Objects(c.Context(), kinds, r.selection.namespaces) }
	slash := len(args) > 0 && strings.Contains(args[0], "/")
	switch {
	case r.selection.all:
		return nil, noFiles
	case strings.Contains(toComplete, "/") && (len(args) == 0 || slash):
		comma := strings.LastIndexByte(toComplete, ',') + 1
		kind, _, named := strings.Cut(toComplete[comma:], "/")
		if !named {
			return nil, noFiles // another kind, without its slash
		}
		return completion.After(toComplete[:comma]+kind+"/", objects(kind), toComplete), noFiles
	case slash:
		return completion.Before(kinds)(c, nil, toComplete)
	case len(args) > 0:
		names := slices.DeleteFunc(objects(strings.Split(args[0], ",")...), func(name string) bool { return slices.Contains(args[1:], name) })
		return completion.After("", names, toComplete), noFiles
	}
	return kinds(c, args, toComplete)
}
