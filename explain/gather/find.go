// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Named are the objects that a search has found.
type Named struct {
	Objects []runs.Object
	// Unread are sentences about what could not be searched.
	Unread []string
}

// Find returns the objects of some kinds whose names have a text in them; an empty text chooses all. Of each kind it reads the
// metadata of the first 500 objects. Of a kind with more it looks up the exact name, too.
func (g Gatherer) Find(ctx context.Context, kinds []client.Served, text string) (found Named) {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k client.Served) bool {
		return !k.Can("list") || !k.Can("watch") || !k.Can("get") || k.Kind == events.Kind
	})
	all := g.listEach(ctx, kinds, func(ctx context.Context, r object.Resource) ([]*metadata, bool, error) {
		items, more, err := g.listMetadata(ctx, r, "", "", mostListed)
		if more && text != "" {
			exact, _, err := g.listMetadata(ctx, r, "", "metadata.name="+text, mostListed)
			return append(items, exact...), more, err
		}
		return items, more, err
	})
	known := map[runs.Object]bool{}
	for _, m := range all.objects {
		if o := m.object(); strings.Contains(o.Name, text) && !known[o] {
			known[o] = true
			found.Objects = append(found.Objects, o)
		}
	}
	found.Unread = all.unread("objects", "parts of names")
	return found
}
