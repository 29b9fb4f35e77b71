// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// Rule hides values. The zero Rule hides nothing. Make one with ParseRule.
type Rule struct {
	text  string
	kinds string    // "*", "pods" or "deployments.apps"
	path  diff.Path // a pattern
}

// String returns the text that the rule was made of.
func (r Rule) String() string { return r.text }

// Matches reports whether the rule is about a kind.
func (r Rule) Matches(k event.Kind) bool {
	return len(r.path) > 0 && (r.kinds == "*" || r.kinds == strings.ToLower(k.String()))
}

// ParseRule reads a rule: the plural of a kind with its group, or * for all kinds, a colon, and the
// path of the hidden value as [diff.ParsePath] reads it. It does not know which kinds there are: a short name, or a kind
// without its group, hides nothing. Package config refuses those.
//
//	configmaps:data.password
//	widgets.example.com:spec.connection.token
//	widgets.example.com:spec.users[*].password
//	*:metadata.annotations[example.com/token]
//
// In a path, * stands for every name in an object, [*] for every element of a list, and
// [name=admin] for the elements of that name. A rule hides the value at its path with
// everything below it. Where the path has a name and the object has a list, or the other way
// round, the rule hides all of it.
//
// Of the metadata, labels and annotations can be hidden: the rest identifies the object.
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

// parsePattern refuses positions, which change as elements come and go.
func parsePattern(text string) (diff.Path, error) {
	p, err := diff.ParsePath(text)
	for i, e := range p {
		switch {
		case e.Kind == diff.Item && !e.Any:
			return nil, fmt.Errorf("[%d] is a position, and positions move; use [*], or [name=value], or [\"%d\"] for a field of that name", e.New, e.New)
		case e.Kind == diff.Order: // which cannot be hidden
			p[i] = field("order")
		}
	}
	return p, err
}

func field(name string) diff.Element { return diff.Element{Kind: diff.Field, Name: name} }

// hideable refuses to hide fields that identify the object of an event.
func hideable(p diff.Path) error {
	named := func(i int, names ...string) bool {
		return i < len(p) && p[i].Kind == diff.Field && slices.Contains(names, p[i].Name)
	}
	switch {
	case p[0].Kind != diff.Field || p[0].Any:
		return errors.New("a path begins with the name of a field, such as spec or data")
	case named(0, "apiVersion", "kind"):
		return fmt.Errorf("%s says which object it is, and cannot be hidden", p[0].Name)
	case named(0, "metadata") && !named(1, "labels", "annotations"):
		return errors.New("of the metadata, only labels and annotations can be hidden; the rest says which object it is")
	}
	return nil
}

// copies are annotations in which programs keep the whole object as it was applied. They would
// show what is hidden in the object.
var copies = []string{
	lastApplied,                       // kubectl apply
	"kapp.k14s.io/original",           // kapp
	"objectset.rio.cattle.io/applied", // k3s and Rancher
	"banzaicloud.com/last-applied",    // operators of Banzai Cloud
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// patterns returns the paths of what is hidden in objects of a kind.
func patterns(k event.Kind, rules []Rule) []diff.Path {
	var ps []diff.Path
	if k.Group == "" && (strings.EqualFold(k.Kind, "Secret") || strings.EqualFold(k.Resource, "secrets")) {
		all := diff.Element{Kind: diff.Field, Any: true}
		ps = append(ps, diff.Path{field("data"), all}, diff.Path{field("stringData"), all})
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
		ps = append(ps, diff.Path{field("metadata"), field("annotations"), field(name)})
	}
	return slices.Clip(ps)
}
