// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Rule says that values are not to be shown. The zero Rule hides nothing. Make one with
// ParseRule.
type Rule struct {
	text  string
	kinds string // "*", "pods" or "deployments.apps"
	path  pattern
}

// String returns the text that the rule was made of.
func (r Rule) String() string { return r.text }

// Matches reports whether the rule is about a kind.
func (r Rule) Matches(k event.Kind) bool {
	return len(r.path) > 0 && (r.kinds == "*" || r.kinds == strings.ToLower(k.String()))
}

// ParseRule reads a rule: the kind as on the command line, or * for all, a colon, and the
// path of what is to be hidden, as the paths of fields are written:
//
//	configmaps:data.password
//	widgets.example.com:spec.connection.token
//	widgets.example.com:spec.users[*].password
//	*:metadata.annotations[example.com/token]
//
// In a path, * stands for every name in an object and [*] for every element of a list;
// [name=admin] for the elements of that name. What a path leads to is hidden with everything
// below it. Where there is a list and the path has a name, or the other way round, all of it
// is hidden.
//
// Of the metadata, labels and annotations can be hidden: the rest says which object it is.
func ParseRule(text string) (Rule, error) {
	kinds, path, ok := strings.Cut(text, ":")
	kinds = strings.ToLower(strings.TrimSpace(kinds))
	switch {
	case !ok:
		return Rule{}, fmt.Errorf("hiding %q: want a kind, a colon and a path, as in configmaps:data.password", text)
	case kinds == "":
		return Rule{}, fmt.Errorf("hiding %q: there is no kind before the colon; * stands for all", text)
	case strings.ContainsAny(kinds, " /,[]") || (strings.Contains(kinds, "*") && kinds != "*"):
		return Rule{}, fmt.Errorf("hiding %q: %q is no kind; want one such as configmaps or widgets.example.com, or * for all", text, kinds)
	}
	p, err := parsePattern(strings.TrimSpace(path))
	if err != nil {
		return Rule{}, fmt.Errorf("hiding %q: the path %q: %w", text, strings.TrimSpace(path), err)
	}
	if err := hideable(p); err != nil {
		return Rule{}, fmt.Errorf("hiding %q: %w", text, err)
	}
	return Rule{text: text, kinds: kinds, path: p}, nil
}

// hideable refuses to hide what says which object an event is about.
func hideable(p pattern) error {
	if p[0].kind != named {
		return errors.New("a path begins with the name of a field, such as spec or data")
	}
	switch p[0].name {
	case "apiVersion", "kind":
		return fmt.Errorf("%s says which object it is, and cannot be hidden", p[0].name)
	case "metadata":
		if len(p) < 2 || p[1].kind != named || p[1].name != "labels" && p[1].name != "annotations" {
			return errors.New("of the metadata, only labels and annotations can be hidden; the rest says which object it is")
		}
	}
	return nil
}

// copies are annotations in which programs keep the whole object as it was applied. What is
// hidden in the object must not be seen in them.
var copies = []string{
	lastApplied,                       // kubectl apply
	"kapp.k14s.io/original",           // kapp
	"objectset.rio.cattle.io/applied", // k3s and Rancher
	"banzaicloud.com/last-applied",    // operators of Banzai Cloud
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// patterns returns what is hidden in objects of a kind.
func patterns(k event.Kind, rules []Rule) []pattern {
	var ps []pattern
	if k.Group == "" && (strings.EqualFold(k.Kind, "Secret") || strings.EqualFold(k.Resource, "secrets")) {
		ps = append(ps,
			pattern{{kind: named, name: "data"}, {kind: each}},
			pattern{{kind: named, name: "stringData"}, {kind: each}})
	}
	for _, r := range rules {
		if r.Matches(k) {
			ps = append(ps, r.path)
		}
	}
	if len(ps) == 0 {
		return nil
	}
	for _, name := range copies {
		ps = append(ps, pattern{{kind: named, name: "metadata"}, {kind: named, name: "annotations"}, {kind: named, name: name}})
	}
	return slices.Clip(ps)
}
