// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// mostNodes is how many values of a file are read, those behind an alias as often as the
// alias is used. A file of a few lines can stand for more of them than memory holds.
const mostNodes = 50_000

// decoder reads a tree of YAML into structs by their yaml tags. Unlike the decoder of the
// YAML package it goes on after a mistake, knows where each value stands, and takes no
// value for what it is not.
type decoder struct {
	file     string
	findings findings
	left     int // nodes that may still be read
	// nodes has what was read, by path: "sinks[0].file.path".
	nodes map[string]*yaml.Node
	// bad has the paths where something is wrong already, and around what they are in: no
	// second complaint is made of what is missing there.
	bad, around map[string]bool
	// partial has the mappings with keys that were not understood: any of them may have been
	// meant to be one that is missing.
	partial map[string]bool
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, left: mostNodes, nodes: map[string]*yaml.Node{}, bad: map[string]bool{}, around: map[string]bool{}, partial: map[string]bool{}}
}

// at returns a finding at the node of a path, or of what it is in.
func (d *decoder) at(path, format string, args ...any) *Finding {
	found := &Finding{File: d.file, Text: fmt.Sprintf(format, args...)}
	for up := path; ; up = parent(up) {
		if node := d.nodes[up]; node != nil {
			found.Line, found.Column = node.Line, node.Column
			break
		}
		if up == "" {
			break
		}
	}
	if path != "" {
		found.Text = path + ": " + found.Text
	}
	return found
}

// wrong notes a mistake at the node of a path, unless there is one already that this one may
// follow from.
func (d *decoder) wrong(path, format string, args ...any) {
	if d.spoilt(path) {
		return
	}
	d.bad[path] = true
	for up := path; up != "" && !d.around[up]; up = parent(up) {
		d.around[up] = true
	}
	d.findings.add(d.at(path, format, args...))
}

// wrongAt notes a mistake at a node that is not the one of the path.
func (d *decoder) wrongAt(node *yaml.Node, path, format string, args ...any) {
	found := d.at(path, format, args...)
	found.Line, found.Column = node.Line, node.Column
	d.findings.add(found)
}

// spoilt reports whether there is a mistake at a path, in what it is in, or inside of it; or
// nothing at it, and beside it a key that was not understood.
func (d *decoder) spoilt(path string) bool {
	for up := path; up != ""; up = parent(up) {
		if d.bad[up] {
			return true
		}
	}
	if d.around[path] {
		return true
	}
	for d.nodes[path] == nil && path != "" {
		path = parent(path)
		if d.partial[path] {
			return true
		}
	}
	return false
}

// parent returns the path of what the value of a path is in.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
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
	case reflect.Bool, reflect.Int:
		d.scalar(node, path, into)
	default:
		d.wrong(path, "cannot be read into a %s", into.Type()) // a test reads all types that there are
	}
}

// mapping reads a mapping into a struct. Nothing at all is an empty one, so that all of
// what is in it can be commented out.
func (d *decoder) mapping(node *yaml.Node, path string, into reflect.Value) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		d.wrong(path, "want keys and values, such as \"%s: …\", not %s", keys(into.Type())[0], sortOf(node))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if d.left--; d.left < 0 {
			return
		}
		switch {
		case key.Tag == "!!merge":
			d.wrongAt(key, path, "keys cannot be merged with <<; write them out, or use an alias for a value")
			d.partial[path] = true
			continue
		case key.Kind != yaml.ScalarNode:
			d.wrongAt(key, path, "want a plain name as the key, not %s", sortOf(key))
			d.partial[path] = true
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.wrongAt(key, path, "the key %q stands here twice, the first time in line %d; leave one of them out", clip(key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		field, ok := fieldOf(into, key.Value)
		if !ok {
			d.partial[path] = true
			if instead, had := gone[key.Value]; had {
				d.wrongAt(key, path, "there is no key %q any more; write %s", key.Value, instead)
				continue
			}
			d.wrongAt(key, path, "there is no key %q here%s", clip(key.Value), d.meant(key.Value, keys(into.Type())))
			continue
		}
		d.read(value, join(path, key.Value), field)
	}
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
			d.read(item, fmt.Sprintf("%s[%d]", path, i), list.Index(i))
		}
		into.Set(list)
	}
}

// text returns what a scalar says. Numbers and dates are texts too, as they are written:
// a namespace may be called 2024.
func (d *decoder) text(node *yaml.Node, path string) (string, bool) {
	switch {
	case isNull(node):
		d.wrong(path, "nothing stands here; write a text, or leave the key out")
	case node.Kind != yaml.ScalarNode:
		d.wrong(path, "want a text, not %s", sortOf(node))
	case !slices.Contains([]string{"!!str", "!!int", "!!float", "!!timestamp"}, node.ShortTag()):
		d.wrong(path, "want a text, not %s; if this is one, put it into quotes", sortOf(node))
	case strings.ContainsRune(node.Value, 0):
		d.wrong(path, "has a NUL character; take it out")
	default:
		return node.Value, true
	}
	return "", false
}

func (d *decoder) duration(node *yaml.Node, path string, into reflect.Value) {
	const want = "want a time with its unit, such as 500ms, 5s, 10m or 24h"
	if node.Kind != yaml.ScalarNode || isNull(node) {
		d.wrong(path, "%s, not %s", want, sortOf(node))
		return
	}
	value, err := time.ParseDuration(node.Value)
	switch {
	case err != nil:
		d.wrong(path, "%q: %s", clip(node.Value), want)
	case value < 0:
		d.wrong(path, "%s is less than nothing; %s", value, want)
	default:
		into.SetInt(int64(value))
	}
}

// scalar reads what is written without quotes: numbers, true and false.
func (d *decoder) scalar(node *yaml.Node, path string, into reflect.Value) {
	want, tag := "true or false", "!!bool"
	if into.Kind() == reflect.Int {
		want, tag = "a whole number", "!!int"
	}
	switch {
	case node.Kind != yaml.ScalarNode || isNull(node):
		d.wrong(path, "want %s, not %s", want, sortOf(node))
	case node.ShortTag() != tag:
		d.wrong(path, "%q: want %s, without quotes", clip(node.Value), want)
	default:
		if node.Decode(into.Addr().Interface()) != nil {
			d.wrong(path, "%q: want %s", clip(node.Value), want)
		}
	}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// sortOf says what stands at a node, without what it says.
func sortOf(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		switch node.ShortTag() {
		case "!!null":
			return "nothing"
		case "!!bool":
			return "true or false"
		case "!!int", "!!float":
			return "a number"
		case "!!str":
			return "a text"
		}
		return "a value of type " + clip(node.ShortTag())
	default:
		return "nothing"
	}
}

// keys returns the keys of a struct, in the order of its fields.
func keys(of reflect.Type) []string {
	var names []string
	for f := range fieldsOf(of) {
		names = append(names, f.key)
	}
	return names
}

// field is a field of a struct that a key stands for.
type field struct {
	key   string
	index []int
	of    reflect.Type
}

// fieldsOf yields those of a struct and of what is inlined into it.
func fieldsOf(of reflect.Type) func(yield func(field) bool) {
	return func(yield func(field) bool) {
		for _, f := range reflect.VisibleFields(of) {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if key == "" || !f.IsExported() {
				continue
			}
			if !yield(field{key: key, index: f.Index, of: f.Type}) {
				return
			}
		}
	}
}

func fieldOf(into reflect.Value, key string) (reflect.Value, bool) {
	for f := range fieldsOf(into.Type()) {
		if f.key == key {
			return into.FieldByIndex(f.index), true
		}
	}
	return reflect.Value{}, false
}

// gone are the keys that this format had once, with what takes their place.
var gone = map[string]string{
	"notify": "webhook with a body for a chat service, or mail, as docs/watch-sinks.md says",
}

// longestName is the longest name that somebody may have misspelt: finding what is nearest
// to it takes time and memory that grow with it.
const longestName = 100

// meant says what somebody may have meant, and what else there is. It looks for nothing that
// nobody will read.
func (d *decoder) meant(name string, known []string) string {
	if d.findings.full() {
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

// index is the path of an element of a list.
func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
