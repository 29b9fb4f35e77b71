// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document makes a YAML document of JSON, with its keys in the same order. A compact one does
// not indent the elements of lists.
func document(b []byte, compact bool) ([]byte, error) {
	root, err := node(b)
	if err != nil {
		return nil, err
	}
	restyle(root, 0)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if compact {
		enc.CompactSeqIndent()
	}
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	// What is dangerous in the output is in double quotes.
	return escapeYAML(out.Bytes()), nil
}

// deepestBlock is how many levels of a document have lines of their own. Objects of Kubernetes
// have some 15; a schema of a definition may have 40.
const deepestBlock = 64

// restyle has the encoder choose the style of values, with two exceptions: texts with dangerous
// characters, since only double quotes have escapes, and words that older readers take
// for true and false.
//
// Values deeper than deepestBlock are on one line. Each level of a block is indented by its
// depth, so the size of a document would grow as the square of its depth.
func restyle(n *yaml.Node, depth int) {
	n.Style = 0
	if depth > deepestBlock && n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		if dirty(strings.ReplaceAll(n.Value, "\n", "")) || oldBool(n.Value) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, child := range n.Content {
		restyle(child, depth+1)
	}
}

func oldBool(s string) bool {
	return slices.Contains([]string{"y", "yes", "on", "n", "no", "off"}, strings.ToLower(s))
}
