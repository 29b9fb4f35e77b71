// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// patterns are names, in some of which a * stands for any characters.
type patterns struct {
	names map[string]bool
	globs [][]string // what is between the *
}

func newPatterns(all []string) patterns {
	p := patterns{names: map[string]bool{}}
	for _, pattern := range all {
		if strings.Contains(pattern, "*") {
			p.globs = append(p.globs, strings.Split(pattern, "*"))
		} else {
			p.names[pattern] = true
		}
	}
	return p
}

func (p patterns) match(name string) bool {
	if p.names[name] {
		return true
	}
	for _, glob := range p.globs {
		if between(glob, name) {
			return true
		}
	}
	return false
}

// between reports whether a name is the parts in their order, with anything between them.
// Taking the first place where each part fits is enough, since * takes whatever is left.
func between(parts []string, name string) bool {
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}
