// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// node returns the YAML tree of a JSON value, with the keys of each map in the same order.
//
// JSON is YAML, and the YAML library could read it, but it refuses more than 10,000 levels. An
// API server takes objects that deep, and an event has levels of its own around its objects.
// Source: encoding/json, maxNestingDepth; go.yaml.in/yaml/v3, max_flow_level.
func node(b []byte) (*yaml.Node, error) {
	in := json.NewDecoder(bytes.NewReader(b))
	in.UseNumber()
	root := &yaml.Node{Kind: yaml.DocumentNode}
	open := []*yaml.Node{root} // what the next value is in, the innermost last
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		n := nodeOf(token)
		outer := open[len(open)-1]
		outer.Content = append(outer.Content, n)
		if n.Kind != yaml.ScalarNode {
			open = append(open, n)
		}
	}
	if len(root.Content) != 1 || len(open) != 1 {
		return nil, fmt.Errorf("want one JSON value, there are %d, and %d that do not end", len(root.Content), len(open)-1)
	}
	return root, nil
}

// nodeOf returns the node that a token begins.
func nodeOf(token json.Token) *yaml.Node {
	scalar := func(tag, value string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	case string:
		return scalar("!!str", v)
	case json.Number:
		return scalar("", v.String()) // the encoder writes it as it is
	case bool:
		return scalar("!!bool", fmt.Sprint(v))
	default:
		return scalar("!!null", "null")
	}
}
