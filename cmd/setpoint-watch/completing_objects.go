// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/wire"
)

// completionPage is how many objects one request of a completion lists.
const completionPage = 1000

// completeArguments completes kinds, and names of objects after them: as in "deploy web" and
// deploy/web.
func (r *runCommand) completeArguments(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
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
		names := r.objectsOf(c, []string{kind})
		return after(toComplete[:comma]+kind+"/", names, toComplete), noFiles
	case slash:
		kinds, directive := listed(r.kinds)(c, nil, toComplete)
		for i, kind := range kinds {
			name, about, described := strings.Cut(kind, "\t")
			if kinds[i] = name + "/"; described {
				kinds[i] += "\t" + about
			}
		}
		return kinds, directive | cobra.ShellCompDirectiveNoSpace
	case len(args) > 0:
		names := slices.DeleteFunc(r.objectsOf(c, strings.Split(args[0], ",")), func(name string) bool { return slices.Contains(args[1:], name) })
		return after("", names, toComplete), noFiles
	}
	return listed(r.kinds)(c, args, toComplete)
}

// after returns the names that continue what is begun, each behind a prefix.
func after(prefix string, names []string, begun string) []string {
	var found []string
	for _, name := range names {
		if strings.HasPrefix(prefix+name, begun) {
			found = append(found, prefix+name)
		}
	}
	return found
}

// objectsOf returns the names of the objects of some kinds, in the namespaces of the flags. It
// returns none on an error, or if the server does not answer in time: a user who may not list
// Secrets types the name of one.
func (r *runCommand) objectsOf(c *cobra.Command, kinds []string) []string {
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	names, err := within(ctx, func(ctx context.Context) ([]string, error) { return r.objectNames(ctx, kinds) })
	if err != nil {
		return nil
	}
	return names
}

func (r *runCommand) objectNames(ctx context.Context, kinds []string) ([]string, error) {
	api, err := r.client()
	if err != nil {
		return nil, err
	}
	served, _ := api.Discover(ctx) // without a group that does not answer, the others are found
	var names []string
	for _, name := range kinds {
		kind, err := watch.FindKind(served, name)
		if err != nil {
			return nil, err
		}
		namespaces := r.selection.namespaces
		if len(namespaces) == 0 || !kind.Namespaced {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			some, err := listNames(ctx, api, kind, namespace)
			if err != nil {
				return nil, err
			}
			names = append(names, some...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// listNames returns the names of the objects of a kind in a namespace, or in all.
func listNames(ctx context.Context, api *client.Client, kind client.Served, namespace string) ([]string, error) {
	var names []string
	selection := client.Selection{Namespace: namespace, MetadataOnly: true, WithoutManagedFields: true}
	page := client.ListOptions{PageSize: completionPage}
	for {
		meta, err := api.List(ctx, kind.Resource, selection, page, func(e wire.Encoding, raw []byte) error {
			var o metav1.PartialObjectMetadata
			if err := e.Decode(raw, &o); err != nil {
				return err
			}
			names = append(names, o.Name)
			return nil
		})
		if err != nil || meta.Continue == "" {
			return names, err
		}
		page.Continue = meta.Continue
	}
}
