// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/nearest"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/where"
)

// selection is what is watched, and which changes become events.
type selection struct {
	kinds         []string
	all           bool
	namespaces    []string
	allNamespaces bool
	exclude       []string
	labels        string
	fields        string
	show          []string
	where         string
	hide          []string
	window        time.Duration
	settle        time.Duration
	initial       bool
	sinceStart    bool
}

func (s *selection) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.all, "all", false, "watch every kind that can be watched")
	f.StringSliceVarP(&s.namespaces, "namespace", "n", nil, "watch this `namespace`; can be given several times (default: all)")
	f.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "watch all namespaces, which is the default; wins over the file")
	f.StringSliceVar(&s.exclude, "exclude-namespace", nil, "leave out this `namespace`; can be given several times")
	f.StringVarP(&s.labels, "selector", "l", "", "watch objects with these `labels`, such as tier=web")
	f.StringVar(&s.fields, "field-selector", "", "watch objects with these `fields`, such as metadata.name=web")
	f.BoolVar(&s.initial, "initial", false, "tell first what is there at the start")
	f.BoolVar(&s.sinceStart, "since-start", true, "tell only what changes; false is as --initial")
	f.StringSliceVar(&s.show, "show", nil, "tell of these `sorts` of changes too: status, heartbeats, versions")
	f.StringVar(&s.where, "where", "", "tell of changes that meet this `condition` in CEL, over event, old, new and object")
	f.StringArrayVar(&s.hide, "hide", nil, "never show these values, by a `rule` such as configmaps:data.password; can be given several times")
	f.DurationVar(&s.window, "window", 0, "gather changes of an object for so long, and tell them as one; 0 is not at all")
	f.DurationVar(&s.settle, "settle", 0, "tell what became of an object once it has been at rest for so long; 0 is each change")
}

// over puts the flags over the options of the file, or says what is wrong with them. --hide adds
// to the rules of the file: no flag shows a value that the file hides.
func (s *selection) over(o *watch.Options, given func(flag string) bool) error {
	if len(s.kinds) > 0 || given("all") {
		o.Kinds, o.All = s.kinds, s.all
	}
	if given("namespace") || given("all-namespaces") {
		o.Namespaces = s.namespaces
	}
	if given("initial") || given("since-start") {
		o.Existing = s.initial || !s.sinceStart
	}
	for flag, put := range map[string]func(){
		"exclude-namespace": func() { o.ExcludeNamespaces = s.exclude },
		"selector":          func() { o.Labels = s.labels },
		"field-selector":    func() { o.Fields = s.fields },
		"window":            func() { o.Window = s.window },
		"settle":            func() { o.Settle = s.settle },
		"show":              func() { o.Show = nil },
		"where":             func() { o.Keep = nil },
	} {
		if given(flag) {
			put()
		}
	}
	for _, name := range s.show {
		if err := knownSort(name); err != nil {
			return err
		}
		o.Show = append(o.Show, event.Class(name))
	}
	for _, text := range s.hide {
		rule, err := config.ParseHide(text)
		if err != nil {
			return fmt.Errorf("--hide=%s: %w", text, err)
		}
		o.Hide = append(o.Hide, rule)
	}
	if s.where != "" {
		condition, err := where.Compile(s.where)
		if err != nil {
			return fmt.Errorf("--where: %w", err)
		}
		o.Keep = condition.Matches
	}
	return s.check(o, given)
}

// knownSort returns an error for a value of --show that does not exist.
func knownSort(name string) error {
	if slices.Contains(event.Classes(), event.Class(name)) {
		return nil
	}
	var known []string
	for _, class := range event.Classes() {
		known = append(known, string(class))
	}
	return fmt.Errorf("--show=%s: there is no such sort of change%s There are %s",
		name, cmp.Or(nearest.Question("%s", name[:min(len(name), 100)], known), "."), strings.Join(known, ", "))
}

func (s *selection) check(o *watch.Options, given func(flag string) bool) error {
	switch {
	case o.All && len(o.Kinds) > 0:
		return fmt.Errorf("--all is every kind, and %s is asked for as well; leave one of them out", strings.Join(o.Kinds, ","))
	case s.allNamespaces && len(o.Namespaces) > 0:
		return fmt.Errorf("--all-namespaces and --namespace=%s: want one of them", o.Namespaces[0])
	case given("initial") && given("since-start") && s.initial == s.sinceStart:
		return errors.New("--initial and --since-start say the opposite of each other; want one of them")
	case o.Window < 0:
		return fmt.Errorf("--window=%s: want 0 or more", o.Window)
	case o.Settle < 0:
		return fmt.Errorf("--settle=%s: want 0 or more", o.Settle)
	}
	for flag, namespaces := range map[string][]string{"namespace": o.Namespaces, "exclude-namespace": o.ExcludeNamespaces} {
		for _, namespace := range namespaces {
			if len(validation.IsDNS1123Label(namespace)) > 0 {
				return fmt.Errorf("--%s=%s: want the name of a namespace: lower-case letters, digits and dashes", flag, namespace)
			}
		}
	}
	for _, namespace := range o.ExcludeNamespaces {
		if slices.Contains(o.Namespaces, namespace) {
			return fmt.Errorf("--exclude-namespace=%s: --namespace=%s asks for it; leave one of them out", namespace, namespace)
		}
	}
	if _, err := labels.Parse(o.Labels); err != nil {
		return fmt.Errorf("--selector=%s: %s; want one such as tier=web,env!=test", o.Labels, cli.OneLine(err))
	}
	if _, err := fields.ParseSelector(o.Fields); err != nil {
		return fmt.Errorf("--field-selector=%s: %s; want one such as metadata.name=web", o.Fields, cli.OneLine(err))
	}
	return nil
}
