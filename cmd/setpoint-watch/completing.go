// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/watch/event"
)

// completionTime is how long the user waits after Tab, at most.
const completionTime = 2 * time.Second

// complete says how flags can go on.
func (r *runCommand) complete(c *cobra.Command) {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	for flag, complete := range map[string]cobra.CompletionFunc{
		"output":            cobra.FixedCompletions([]string{"text\ta line each", "diff\tfield by field", "json\ta line each, for programs", "yaml"}, noFiles),
		"color":             cobra.FixedCompletions([]string{"auto", "always", "never"}, noFiles),
		"show":              listed(sortsOfChanges),
		"namespace":         listed(r.namespaces),
		"exclude-namespace": listed(r.namespaces),
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

// listed completes the last element of a list with commas. Shells with active help show an error.
func listed(all func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		const noFiles = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(c.Context(), completionTime)
		defer cancel()
		candidates, err := within(ctx, all)
		if err != nil {
			return cobra.AppendActiveHelp(nil, cli.OneLine(err)), noFiles
		}
		comma := strings.LastIndexByte(toComplete, ',') + 1
		before, begun := toComplete[:comma], strings.ToLower(toComplete[comma:])
		named := strings.Split(before, ",")
		var found []string
		for _, candidate := range candidates {
			name, _, _ := strings.Cut(candidate, "\t")
			if strings.HasPrefix(name, begun) && !slices.Contains(named, name) {
				found = append(found, before+candidate)
			}
		}
		return found, noFiles
	}
}

// within returns the result of f, or an error when ctx ends: a kubeconfig can name a program,
// which nothing else bounds.
func within(ctx context.Context, f func(context.Context) ([]string, error)) ([]string, error) {
	type result struct {
		names []string
		err   error
	}
	done := make(chan result, 1)
	go func() {
		names, err := f(ctx)
		done <- result{names, err}
	}()
	select {
	case r := <-done:
		return r.names, r.err
	case <-ctx.Done():
		return nil, errors.New("the server did not answer in time")
	}
}

func (r *runCommand) client() (*client.Client, error) {
	config, err := r.target.Config()
	if err != nil {
		return nil, err
	}
	return client.New(config)
}

// kinds returns the kinds that can be watched, by their names in kubectl.
func (r *runCommand) kinds(ctx context.Context) ([]string, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	served, err := c.Discover(ctx)
	if _, partly := errors.AsType[*client.DiscoveryError](err); err != nil && !partly {
		return nil, err
	}
	var names []string
	for _, s := range served {
		if !s.Can("list") || !s.Can("watch") {
			continue
		}
		name, about := s.Plural, s.Kind
		if s.Group != "" {
			name += "." + s.Group
		}
		if len(s.Short) > 0 {
			about += " (" + strings.Join(s.Short, ", ") + ")"
		}
		names = append(names, name+"\t"+about)
	}
	slices.Sort(names)
	return names, nil
}

func (r *runCommand) namespaces(ctx context.Context) ([]string, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	all, _, err := client.For[*corev1.Namespace](c).List(ctx, client.Selection{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range all {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names, nil
}
