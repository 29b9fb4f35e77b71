// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"slices"
	"strings"
)

// patterns are names, in some of which a * stands for any characters.
type patterns struct {
	names map[string]bool
	globs []string
}

func newPatterns(all []string) patterns {
	p := patterns{names: map[string]bool{}}
	for _, pattern := range all {
		if strings.Contains(pattern, "*") {
			p.globs = append(p.globs, pattern)
		} else {
			p.names[pattern] = true
		}
	}
	return p
}

func (p patterns) empty() bool { return len(p.names) == 0 && len(p.globs) == 0 }

func (p patterns) match(name string) bool {
	return p.names[name] || slices.ContainsFunc(p.globs, func(glob string) bool {
		like, _ := path.Match(glob, name) // the rules let through nothing that path.Match reads, but *
		return like
	})
}
