// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/watch/sink"
)

func (r *rules) sinks() {
	sinks := r.config.Sinks
	lines := map[string]int{}
	for i := range sinks {
		s, path := &sinks[i], index("sinks", i)
		name := join(path, "name")
		line := 0
		if node := r.nodes[name]; node != nil {
			line = node.Line
		}
		switch first, twice := lines[s.Name]; {
		case r.spoilt(name):
		case s.Name == "":
			r.wrong(name, "a sink needs a name, by which routes lead to it")
		case len(validation.IsDNS1123Label(s.Name)) > 0:
			r.wrong(name, "%q cannot be a name: want lower case letters, digits and dashes, at most 63", clip(s.Name))
		case twice:
			r.wrong(name, "%q is the name of the sink in line %d too; give each its own", clip(s.Name), first)
		default:
			lines[s.Name] = line
		}
		r.sink(path, s.Options)
	}
}

// sink checks the options of one sink.
func (r *rules) sink(path string, o sink.Options) {
	switch sorts := o.Described(); {
	case len(sorts) > 1:
		slices.SortFunc(sorts, func(a, b string) int { return r.compare(join(path, a), join(path, b)) })
		r.findings.add(r.at(join(path, sorts[1]), "a sink is of one sort, and this one is of %s; make them sinks of their own", strings.Join(sorts, " and ")))
	case len(sorts) == 0 && !r.partial[path] && !r.spoilt(path): // a key that is not known is the sort, most likely
		r.wrong(path, "a sink is of a sort; write one of the keys %s", strings.Join(sink.Sorts(), ", "))
	}
	for _, mistake := range o.Mistakes() {
		r.wrong(join(path, mistake.Field), "%v", mistake.Err)
	}
}

// compare orders paths as they stand in the file.
func (r *rules) compare(a, b string) int {
	x, y := r.nodes[a], r.nodes[b]
	return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
}

// sinkNames returns the names of all sinks.
func (c *Config) sinkNames() []string {
	var names []string
	for _, s := range c.Sinks {
		names = append(names, s.Name)
	}
	return names
}
