// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/nearest"
)

// Named returns the kind of a name, of those that fit. Names are as kubectl takes them: the plural, the singular, a short
// name or the kind, in any case, and behind a dot the group, or the version and the group. Where several groups have the
// name, the core group goes first and then the order of the server. If there is none, near is a kind with a similar name,
// or empty.
func Named(served []client.Served, name string, fits func(client.Served) bool) (kind client.Served, near string, found bool) {
	short, rest, grouped := strings.Cut(strings.ToLower(name), ".")
	var all []client.Served
	for _, s := range served {
		if fits(s) && isNamed(s, short) && (!grouped || rest == s.Group || rest == s.Version+"."+s.Group) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return client.Served{}, nearestKind(served, short, fits), false
	}
	if core := slices.IndexFunc(all, func(s client.Served) bool { return s.Group == "" }); core >= 0 {
		return all[core], "", true
	}
	return all[0], "", true
}

func isNamed(s client.Served, name string) bool {
	return name != "" && (name == s.Plural || name == s.Singular || name == strings.ToLower(s.Kind) || slices.Contains(s.Short, name))
}

func nearestKind(served []client.Served, name string, fits func(client.Served) bool) string {
	var known []string
	for _, s := range served {
		if fits(s) {
			known = append(known, s.Plural)
		}
	}
	return nearest.Name(name, known)
}
