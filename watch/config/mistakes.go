// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// mistakes are what is wrong with a file, and the places of its values.
type mistakes struct {
	file     string
	findings findings
	// nodes are the values that were read, by path.
	nodes map[string]*yaml.Node
	// bad are the paths with a mistake. There is one mistake for a path, what is in it and what
	// it is in: a second one may follow from the first.
	bad map[string]bool
	// partial are the mappings with keys that were not understood: each of those may be a
	// misspelling of a key that is missing.
	partial map[string]bool
}

// at returns a finding at the node of a path, or of the nearest value around it that was read.
func (m *mistakes) at(path, format string, args ...any) *Finding {
	found := &Finding{File: m.file, Text: fmt.Sprintf(format, args...)}
	if path != "" {
		found.Text = path + ": " + found.Text
	}
	for m.nodes[path] == nil && path != "" {
		path = parent(path)
	}
	if node := m.nodes[path]; node != nil {
		found.Line, found.Column = node.Line, node.Column
	}
	return found
}

// wrong notes a mistake at the node of a path, unless it may follow from another one.
func (m *mistakes) wrong(path, format string, args ...any) {
	if m.spoilt(path) {
		return
	}
	if !m.findings.full() {
		m.bad[path] = true
	}
	m.findings.add(m.at(path, format, args...))
}

// wrongAt notes a mistake at a node that is not the one of the path.
func (m *mistakes) wrongAt(node *yaml.Node, path, format string, args ...any) {
	found := m.at(path, format, args...)
	found.Line, found.Column = node.Line, node.Column
	m.findings.add(found)
}

// unread notes a key of a mapping that was not understood.
func (m *mistakes) unread(key *yaml.Node, path, format string, args ...any) {
	m.partial[path] = true
	m.wrongAt(key, path, format, args...)
}

// spoilt reports whether a mistake at a path may follow from another one: one in the same place,
// or a key that was not understood beside a value that is missing.
func (m *mistakes) spoilt(path string) bool {
	for bad := range m.bad {
		if inside(path, bad) || inside(bad, path) {
			return true
		}
	}
	for m.nodes[path] == nil && path != "" {
		path = parent(path)
		if m.partial[path] {
			return true
		}
	}
	return false
}

// longestName is how many bytes of a misspelt name are compared with others: that takes time and
// memory that grow with the name.
const longestName = 100

// meant suggests the nearest of the known names, and lists them. It suggests nothing for a
// mistake that is not reported.
func (m *mistakes) meant(name string, known []string) string {
	if m.findings.full() {
		return ""
	}
	question := ""
	if len(name) <= longestName {
		question = nearest.Question("%q", name, known)
	}
	switch {
	case len(known) > 1 && question != "":
		return question + " There are " + strings.Join(known, ", ")
	case len(known) > 1:
		return "; there are " + strings.Join(known, ", ")
	case question != "":
		return question
	}
	return fmt.Sprintf("; there is only %q", known[0])
}

// clip shortens what is quoted in an error.
func clip(text string) string {
	const most = 60
	if runes := []rune(text[:min(len(text), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
