// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// pair decodes two messages, field by field. Fields whose bytes are equal are decoded once.
func (p *messageTree) pair(s *Schema, before, after []byte, was, is map[string]any, depth int) bool {
	s.open(was)
	s.open(is)
	return p.inlinePair(s, before, after, was, is, depth)
}

func (p *messageTree) inlinePair(s *Schema, before, after []byte, was, is map[string]any, depth int) bool {
	first := len(p.fields)
	defer func() { p.fields = p.fields[:first] }()
	if depth >= treeNesting || !p.parse(before) {
		return false
	}
	middle := len(p.fields)
	if !p.parse(after) {
		return false
	}
	end := len(p.fields)
	for i, j := first, middle; i < middle || j < end; {
		var ok bool
		switch {
		case j == end || i < middle && p.fields[i].number < p.fields[j].number:
			n := run(p.fields[i:middle])
			ok = p.set(s, before, p.fields[i:i+n], was, depth)
			i += n
		case i == middle || p.fields[j].number < p.fields[i].number:
			n := run(p.fields[j:end])
			ok = p.set(s, after, p.fields[j:j+n], is, depth)
			j += n
		default:
			n, m := run(p.fields[i:middle]), run(p.fields[j:end])
			ok = p.setPair(s, before, after, p.fields[i:i+n], p.fields[j:j+m], was, is, depth)
			i, j = i+n, j+m
		}
		if !ok {
			return false
		}
	}
	return true
}

// setPair decodes the fields of one number, which both messages have.
func (p *messageTree) setPair(s *Schema, before, after []byte, old, new []wireField, was, is map[string]any, depth int) bool { //nolint:predeclared // as above
	f := s.field(old[0].number)
	alike := bytes.Equal(before[old[0].from:old[len(old)-1].to], after[new[0].from:new[len(new)-1].to])
	switch {
	case alike && (f == nil || !f.inline):
		if !p.set(s, before, old, was, depth) {
			return false
		}
		name := unknown(old[0].number)
		if f != nil {
			name = f.name
		}
		if value, there := was[name]; there {
			is[name] = value
		}
		return true
	case f == nil || f.shape != messageShape || f.mapped:
		return p.set(s, before, old, was, depth) && p.set(s, after, new, is, depth)
	case f.list:
		return p.listPair(f, old, new, was, is, depth)
	case len(old) > 1 || len(new) > 1 || old[0].typ != protowire.BytesType || new[0].typ != protowire.BytesType:
		return false
	case f.inline:
		return p.inlinePair(f.message, old[0].value, new[0].value, was, is, depth+1)
	}
	one, other := map[string]any{}, map[string]any{}
	was[f.name], is[f.name] = one, other
	return p.pair(f.message, old[0].value, new[0].value, one, other, depth+1)
}

// listPair decodes the elements of two lists of messages by their positions.
func (p *messageTree) listPair(f *schemaField, old, new []wireField, was, is map[string]any, depth int) bool { //nolint:predeclared // as above
	before, after := make([]any, len(old)), make([]any, len(new))
	was[f.name], is[f.name] = before, after
	for i := range max(len(old), len(new)) {
		var ok bool
		switch {
		case i >= len(new):
			before[i], ok = p.value(f, &old[i], depth)
		case i >= len(old):
			after[i], ok = p.value(f, &new[i], depth)
		case old[i].typ != protowire.BytesType || new[i].typ != protowire.BytesType:
			return false
		case bytes.Equal(old[i].value, new[i].value):
			before[i], ok = p.value(f, &old[i], depth)
			after[i] = before[i]
		default:
			one, other := map[string]any{}, map[string]any{}
			before[i], after[i] = one, other
			ok = p.pair(f.message, old[i].value, new[i].value, one, other, depth+1)
		}
		if !ok {
			return false
		}
	}
	return true
}
