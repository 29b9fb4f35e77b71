// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"
)

// mostNodes is how many values of a file are read, those behind an alias as often as the
// alias is used. A file of a few lines can stand for more of them than memory holds.
const mostNodes = 50_000

// decoder reads a tree of YAML into structs by their yaml tags.
type decoder struct {
	mistakes
	left int // nodes that may still be read
}

func newDecoder(file string) *decoder {
	return &decoder{left: mostNodes, mistakes: mistakes{
		file: file, nodes: map[string]*yaml.Node{}, bad: map[string]bool{}, partial: map[string]bool{},
	}}
}

// read reads a node into a value, which can be set.
func (d *decoder) read(node *yaml.Node, path string, into reflect.Value) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if d.left--; d.left < 0 {
		return
	}
	d.nodes[path] = node
	if text, ok := reflect.TypeAssert[encoding.TextUnmarshaler](into.Addr()); ok {
		if value, ok := d.text(node, path); ok {
			if err := text.UnmarshalText([]byte(value)); err != nil {
				d.wrong(path, "%v", err)
			}
		}
		return
	}
	if into.Type() == reflect.TypeFor[time.Duration]() {
		d.duration(node, path, into)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.mapping(node, path, into.Elem())
	case reflect.Struct:
		d.mapping(node, path, into)
	case reflect.Slice:
		d.list(node, path, into)
	case reflect.String:
		if value, ok := d.text(node, path); ok {
			into.SetString(value)
		}
	case reflect.Bool:
		d.scalar(node, path, "!!bool", "true or false", into)
	case reflect.Int:
		d.scalar(node, path, "!!int", "a whole number", into)
	default:
		d.wrong(path, "cannot be read into a %s", into.Type()) // a test reads all types that there are
	}
}

// mapping reads a mapping into a struct. Nothing at all is an empty mapping, so that a user can
// comment out everything in it.
func (d *decoder) mapping(node *yaml.Node, path string, into reflect.Value) {
	if isNull(node) {
		return
	}
	fields := fieldsOf(into.Type())
	if node.Kind != yaml.MappingNode {
		d.wrong(path, "want keys and values, such as \"%s: …\", not %s", fields[0].key, sortOf(node))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if d.left--; d.left < 0 {
			return
		}
		if key.Tag == "!!merge" {
			d.unread(key, path, "keys cannot be merged with <<; write them out, or use an alias for a value")
			continue
		}
		if key.Kind != yaml.ScalarNode {
			d.unread(key, path, "want a plain name as the key, not %s", sortOf(key))
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.wrongAt(key, path, "the key %q stands here twice, the first time in line %d; leave one of them out", clip(key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		if f, ok := fieldOf(fields, key.Value); ok {
			d.read(value, join(path, key.Value), into.FieldByIndex(f.index))
		} else if instead, had := gone[key.Value]; had {
			d.unread(key, path, "there is no key %q any more; write %s", key.Value, instead)
		} else {
			d.unread(key, path, "there is no key %q here%s", clip(key.Value), d.meant(key.Value, keys(fields)))
		}
	}
}

// gone are the keys that this format had once, with what takes their place.
var gone = map[string]string{
	"notify": "webhook with a body for a chat service, or mail, as docs/watch-sinks.md says",
}

// list reads a sequence.
func (d *decoder) list(node *yaml.Node, path string, into reflect.Value) {
	switch {
	case isNull(node):
		d.wrong(path, "nothing stands here; write a list, or leave the key out")
	case node.Kind != yaml.SequenceNode:
		d.wrong(path, "want a list, such as [a, b], not %s", sortOf(node))
	default:
		list := reflect.MakeSlice(into.Type(), 0, min(len(node.Content), max(d.left, 0)))
		for i, item := range node.Content {
			if d.left < 0 {
				break
			}
			list = reflect.Append(list, reflect.Zero(into.Type().Elem()))
			d.read(item, index(path, i), list.Index(i))
		}
		into.Set(list)
	}
}
