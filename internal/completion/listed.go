// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// Time is how long the user waits after Tab, at most.
const Time = 2 * time.Second

// Listed completes the last element of a list with commas. all returns the possible elements; each
// may have a description after a tab. Shells with active help show its error.
func Listed(all func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		const noFiles = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(c.Context(), Time)
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

// Before returns the completion of another with a slash behind each name and no space after it, as
// for a kind whose object follows.
func Before(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		found, directive := complete(c, args, toComplete)
		for i, candidate := range found {
			name, about, described := strings.Cut(candidate, "\t")
			if found[i] = name + "/"; described {
				found[i] += "\t" + about
			}
		}
		return found, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// After returns the names that continue what is begun, each behind a prefix.
func After(prefix string, names []string, begun string) []string {
	var found []string
	for _, name := range names {
		if strings.HasPrefix(prefix+name, begun) {
			found = append(found, prefix+name)
		}
	}
	return found
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
