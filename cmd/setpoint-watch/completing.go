// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/completion"
	"github.com/setpoint-io/setpoint/watch/event"
)

// complete says how flags can go on.
func (r *runCommand) complete(c *cobra.Command) {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	for flag, complete := range map[string]cobra.CompletionFunc{
		"output":            cobra.FixedCompletions([]string{"text\ta line each", "diff\tfield by field", "json\ta line each, for programs", "yaml"}, noFiles),
		"color":             cobra.FixedCompletions([]string{"auto", "always", "never"}, noFiles),
		"show":              completion.Listed(sortsOfChanges),
		"namespace":         completion.Listed(r.cluster().Namespaces),
		"exclude-namespace": completion.Listed(r.cluster().Namespaces),
		"context": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return r.target.Contexts(), noFiles
		},
		"selector":       cobra.NoFileCompletions,
		"field-selector": cobra.NoFileCompletions,
		"where":          cobra.NoFileCompletions,
		"hide":           cobra.NoFileCompletions,
		"window":         cobra.NoFileCompletions,
		"settle":         cobra.NoFileCompletions,
	} {
		_ = c.RegisterFlagCompletionFunc(flag, complete)
	}
}

// sortsOfChanges are the values of --show that add something.
func sortsOfChanges(context.Context) ([]string, error) {
	return []string{
		string(event.Status) + "\twhat a controller or a kubelet reports, such as a Pod that becomes ready",
		string(event.Heartbeat) + "\tsomebody says that he is alive: leases, times of conditions",
		string(event.Version) + "\tnothing that can be seen but the resourceVersion",
	}, nil
}

// cluster is what completions ask: the kinds that can be watched.
func (r *runCommand) cluster() completion.Cluster {
	return completion.Cluster{Target: &r.target, Fits: func(s client.Served) bool { return s.Can("list") && s.Can("watch") }}
}
