// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// text returns the text of a scalar. Numbers and dates are texts too, as they are written: a
// namespace may be called 2024.
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

// scalar reads a value with a tag, which is written without quotes.
func (d *decoder) scalar(node *yaml.Node, path, tag, want string, into reflect.Value) {
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

// sortOf describes the sort of a node, without its value.
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
