// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// rules check what a decoded configuration means.
type rules struct {
	*decoder
	config   *Config
	lines    []string // of the file
	warnings findings
}

func (r *rules) warn(path, format string, args ...any) {
	if !r.spoilt(path) {
		r.warnings.add(r.at(path, format, args...))
	}
}

func (r *rules) check() {
	c := r.config
	switch {
	case c.APIVersion == "" && r.nodes["apiVersion"] == nil && !r.spoilt("apiVersion"):
		r.findings.add(&Finding{File: r.file, Line: 1, Text: "there is no apiVersion; write \"apiVersion: " + Version + "\" at the top"})
	case c.APIVersion != Version:
		r.wrong("apiVersion", "%q: this program reads %s", clip(c.APIVersion), Version)
	}
	r.watch(&c.Watch)
	for i, rule := range c.Hide {
		r.hide(index("hide", i), rule)
	}
	r.filled("cursor", c.Cursor)
	if c.CursorStates && c.Cursor == "" {
		r.warn("cursorStates", "keeps states in the cursor, and there is none; add \"cursor: FILE\"")
	}
	r.place()
	r.sinks()
	r.readable()
	r.routes()
}

// filled refuses an empty text, which is most often a placeholder.
func (r *rules) filled(path, value string) {
	if value == "" && r.nodes[path] != nil {
		r.wrong(path, "is empty; write a text, or leave the key out")
	}
}

// some refuses an empty list: it would mean everything.
func some[T any](r *rules, path string, list []T) {
	if len(list) == 0 && r.nodes[path] != nil {
		r.wrong(path, "is empty; name some, or leave the key out")
	}
}

func (r *rules) watch(w *Watch) {
	some(r, "watch.kinds", w.Kinds)
	some(r, "watch.namespaces", w.Namespaces)
	if w.All && len(w.Kinds) > 0 {
		r.wrong("watch.all", "all kinds are asked for, and some by name; leave out one of all and kinds")
	}
	for i, kind := range w.Kinds {
		r.watchedKind(index("watch.kinds", i), kind, w.Kinds)
	}
	r.twice("watch.kinds", w.Kinds)
	for list, names := range map[string][]string{"watch.namespaces": w.Namespaces, "watch.excludeNamespaces": w.ExcludeNamespaces} {
		for i, name := range names {
			r.namespace(index(list, i), name)
		}
		r.twice(list, names)
	}
	for i, name := range w.ExcludeNamespaces {
		switch {
		case slices.Contains(w.Namespaces, name):
			r.wrong(index("watch.excludeNamespaces", i), "%q is among watch.namespaces as well; leave it out of one of them", clip(name))
		case len(w.Namespaces) > 0:
			r.warn(index("watch.excludeNamespaces", i), "leaves nothing out: %q is not among watch.namespaces", clip(name))
		}
	}
	for i, name := range w.Show {
		r.one(index("watch.show", i), "sort of change", name, words(event.Classes()))
	}
	r.labels("watch.labels", w.Labels)
	if _, err := fields.ParseSelector(w.Fields); len(w.Fields) > longestSelector {
		r.wrong("watch.fields", "is of %d bytes, and no more than %d are sent to a server", len(w.Fields), longestSelector)
	} else if err != nil {
		r.wrong("watch.fields", "%q is no selector: %v; write one such as metadata.name=web", clip(w.Fields), err)
	}
	r.filled("watch.labels", w.Labels)
	r.filled("watch.fields", w.Fields)
	r.config.where = r.condition("watch.where", w.Where)
	if w.Fields != "" && (w.All || len(w.Kinds) > 1) && !slices.ContainsFunc([]string{"metadata.name", "metadata.namespace"}, func(every string) bool {
		return strings.HasPrefix(w.Fields, every)
	}) {
		r.warn("watch.fields", "few kinds can be selected by such a field; the server refuses the others, and their changes are not reported")
	}
}

// kind checks the name of a kind without a cluster: the same file means the same everywhere.
func (r *rules) kind(path, name string) {
	plural, group := splitKind(name)
	switch {
	case strings.Contains(plural, "/"):
		r.wrong(path, "%q: subresources cannot be watched; name the kind, such as pods", clip(name))
	case len(validation.IsDNS1035Label(strings.ToLower(plural))) > 0 || strings.HasSuffix(name, "."):
		r.wrong(path, "%q is no kind; write the plural and the group, such as pods or deployments.apps", clip(name))
	case strings.ToLower(name) != name:
		r.wrong(path, "%q: want the plural in lower case%s", clip(name), r.nearKind(plural, group))
	case group == "" && scopeOf(plural) == unknownScope:
		r.wrong(path, "%q is no kind without a group%s A kind of your own is named with its group, as in widgets.example.com", clip(name), cmp.Or(r.nearKind(plural, group), "."))
	case group == "":
	case versioned.MatchString(group):
		version, rest, _ := strings.Cut(group, ".")
		r.wrong(path, "%q: leave the version out: %q. It is watched in the version that the server prefers to %s", clip(name), strings.TrimSuffix(plural+"."+rest, "."), version)
	case len(validation.IsDNS1123Subdomain(group)) > 0:
		r.wrong(path, "%q: %q cannot be a group; write a kind such as deployments.apps", clip(name), clip(group))
	case builtin.groups[group] != nil && scopeOf(name) == unknownScope:
		r.warn(path, "%q: Kubernetes has no such kind in the group %s that is known here%s", clip(name), group, r.nearKind(plural, group))
	}
}

// versioned matches a group with a version before it: deployments.v1.apps.
var versioned = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?(\.|$)`)

// nearKind asks whether the nearest kind was meant.
func (r *rules) nearKind(plural, group string) string {
	if r.findings.full() || len(plural) > longestName {
		return ""
	}
	if near := nearKind(plural, group); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func (r *rules) namespace(path, name string) {
	switch {
	case strings.Contains(name, "*"):
		r.wrong(path, "%q: what is watched is asked of the server by name; write the namespaces out, or use * in the match of a route", clip(name))
	case len(validation.IsDNS1123Label(name)) > 0:
		r.wrong(path, "%q cannot be a namespace: lower case letters, digits and dashes are", clip(name))
	}
}

// pattern checks a name in which * stands for anything.
func (r *rules) pattern(path, name string, allowed *regexp.Regexp, what string) {
	if !allowed.MatchString(name) {
		r.wrong(path, "%q cannot be %s, and no pattern for some", clip(name), what)
	}
}

var (
	namespacePattern = regexp.MustCompile(`^[a-z0-9*]([-a-z0-9*]{0,62}[a-z0-9*])?$`)
	kindPattern      = regexp.MustCompile(`^[a-z0-9*]([-.a-z0-9*]{0,300}[a-z0-9*])?$`)
)

// twice warns of names that are twice in a list.
func (r *rules) twice(path string, list []string) {
	seen := map[string]bool{}
	for i, name := range list {
		if seen[name] && name != "" {
			r.warn(index(path, i), "%q stands here twice", clip(name))
		}
		seen[name] = true
	}
}

// one checks a name that must be one of few.
func (r *rules) one(path, what, name string, known []string) {
	if !slices.Contains(known, name) {
		r.wrong(path, "there is no %s %q%s", what, clip(name), r.meant(name, known))
	}
}

func (r *rules) labels(path, selector string) {
	if len(selector) > longestSelector {
		r.wrong(path, "is of %d bytes, and no more than %d are sent to a server", len(selector), longestSelector)
	} else if _, err := labels.Parse(selector); err != nil {
		r.wrong(path, "%q is no selector: %v; write one such as tier=web,env in (a, b)", clip(selector), clip(err.Error()))
	}
}

// longestSelector is how many bytes of a selector go into the URL of a watch: proxies take
// URLs of 8 KiB, and escaped it is longer.
const longestSelector = 4 << 10

// hide reads a rule for values that are not shown.
func (r *rules) hide(path, text string) {
	kind, field, ok := strings.Cut(text, ":")
	if !ok || kind == "" || field == "" {
		r.wrong(path, "%q: want a kind, a colon and the path of a field, such as configmaps:data.password", clip(text))
		return
	}
	if !strings.Contains(kind, "*") {
		r.kind(path, kind)
	}
	rule, err := observe.ParseRule(text)
	if err != nil {
		r.wrong(path, "%q: %s", clip(text), strings.TrimPrefix(err.Error(), fmt.Sprintf("hiding %q: ", text)))
	}
	r.config.hide = append(r.config.hide, rule)
}

// ParseHide reads a rule for values that are not shown, as those of "hide" in a file. It refuses a kind that no object has by this name, such
// as a singular or a short name: the rule would hide nothing.
func ParseHide(text string) (observe.Rule, error) {
	r := &rules{decoder: newDecoder(""), config: &Config{}}
	r.hide("hide", text)
	if len(r.findings.list) > 0 {
		return observe.Rule{}, errors.New(r.findings.list[0].Text)
	}
	return r.config.hide[0], nil
}

// place checks the address of health and metrics, and the Lease.
func (r *rules) place() {
	c := r.config
	if r.filled("listen", c.Listen); c.Listen != "" {
		if _, err := addressOf(c.Listen); err != nil {
			r.wrong("listen", "%q: want an address and a port, such as :8080 or 127.0.0.1:8080", clip(c.Listen))
		}
	}
	if r.filled("lease", c.Lease); c.Lease != "" {
		namespace, name, _ := strings.Cut(c.Lease, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			r.wrong("lease", "%q: want a namespace and a name, such as monitoring/setpoint-watch", clip(c.Lease))
		}
	}
}

// addressOf reads :8080, 127.0.0.1:8080 or [::]:8080. Without an address it is any.
func addressOf(listen string) (netip.AddrPort, error) {
	if strings.HasPrefix(listen, ":") {
		listen = "0.0.0.0" + listen
	}
	at, err := netip.ParseAddrPort(listen)
	if err == nil && at.Port() == 0 {
		err = errors.New("port 0 is not a fixed port; name one")
	}
	return at, err
}
