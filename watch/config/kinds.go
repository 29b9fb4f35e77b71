// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

//go:embed kinds.txt
var kindsText string

// builtin has the kinds of Kubernetes. Without a server nothing else says that Pods have no group
// and Nodes no namespace. Other kinds are defined by CustomResourceDefinitions, or belong to
// another version of Kubernetes.
var builtin = table(kindsText)

// scope says whether the objects of a kind are in namespaces.
type scope int

const (
	unknownScope scope = iota // only the cluster knows
	inNamespaces
	inCluster
)

type kinds struct {
	all    []string         // as plural.group
	scopes map[string]scope // of them
	short  map[string]string
	groups map[string][]string // plurals
}

func table(text string) kinds {
	k := kinds{scopes: map[string]scope{}, short: map[string]string{}, groups: map[string][]string{}}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		name, of := words[0], inNamespaces
		if plural, cluster := strings.CutSuffix(name, "/"); cluster {
			name, of = plural, inCluster
		}
		plural, group := splitKind(name)
		k.all, k.scopes[name], k.groups[group] = append(k.all, name), of, append(k.groups[group], plural)
		for _, short := range words[1:] {
			k.short[short] = name
		}
	}
	return k
}

// splitKind splits deployments.apps.
func splitKind(name string) (plural, group string) {
	plural, group, _ = strings.Cut(name, ".")
	return plural, group
}

// scopeOf says where objects of a kind are.
func scopeOf(kind string) scope { return builtin.scopes[kind] }

// inClusterKinds returns those that are not in namespaces.
func inClusterKinds() []string {
	return slices.DeleteFunc(slices.Clone(builtin.all), func(kind string) bool { return scopeOf(kind) != inCluster })
}

// nearKind returns the kind that was probably meant, or "". With a group it is a kind of the same
// group. Without a group it is of any group, and the name may be a singular or a short name.
func nearKind(plural, group string) string {
	lower := strings.ToLower(plural)
	if group != "" {
		if near := nearest.Name(lower, builtin.groups[group]); near != "" {
			return near + "." + group
		}
		return ""
	}
	if name := builtin.short[lower]; name != "" {
		return name
	}
	plurals := map[string]string{} // the first kind of each, of the core group if there is one
	for _, name := range slices.Backward(builtin.all) {
		p, _ := splitKind(name)
		plurals[p] = name
	}
	for _, name := range []string{lower, lower + "s", lower + "es", strings.TrimSuffix(lower, "y") + "ies"} {
		if plurals[name] != "" {
			return plurals[name]
		}
	}
	names := make([]string, 0, len(plurals))
	for p := range plurals {
		names = append(names, p)
	}
	return plurals[nearest.Name(lower, sorted(names))]
}
