// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/completion"
)

// complete says how arguments and flags can go on.
func (x *command) complete(c *cobra.Command) {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	cluster := completion.Cluster{Target: &x.target, Fits: func(s client.Served) bool { return s.Can("get") && s.Can("list") }}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		objects := func(kind string) []string {
			namespace := x.namespace
			if namespace == "" {
				namespace, _ = x.target.Namespace() // on an error the server is not reached either
			}
			return cluster.Objects(c.Context(), []string{kind}, []string{namespace})
		}
		kind, _, slash := strings.Cut(toComplete, "/")
		switch {
		case len(args) > 1, len(args) == 1 && strings.Contains(args[0], "/"):
			return nil, noFiles // the object is named
		case strings.Contains(toComplete, ","):
			return nil, noFiles // one object, no list
		case len(args) == 1:
			return completion.After("", objects(args[0]), toComplete), noFiles
		case slash:
			return completion.After(kind+"/", objects(kind), toComplete), noFiles
		}
		return completion.Listed(cluster.Kinds)(c, nil, toComplete)
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"namespace": completion.Listed(cluster.Namespaces),
		"output":    cobra.FixedCompletions([]string{"text\tfor people", "json\tfor programs"}, noFiles),
		"manager":   cobra.NoFileCompletions,
		"context": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return x.target.Contexts(), noFiles
		},
	} {
		_ = c.RegisterFlagCompletionFunc(flag, complete) // an error is a flag that there is not, or a second completion
	}
}
