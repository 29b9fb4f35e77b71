// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/nearest"
)

// configFile is a file that stands for flags: a YAML mapping whose keys are their names,
// without the dashes before them. A flag on the command line wins.
type configFile struct{ path string }

func (c *configFile) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.path, "config", "", "YAML `file` with flags: a mapping, such as \"node-monitor-grace-period: 40s\"; a flag on the command line wins")
}

// apply reads the file, if there is one, and sets the flags that the command line left out.
// The error says file, line and key of the first mistake. Keys that the command line
// overrules must be right too.
func (c *configFile) apply(flags *pflag.FlagSet) error {
	if c.path == "" {
		return nil
	}
	text, err := os.ReadFile(c.path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	settings, err := readSettings(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("--config: %s: %w", c.path, err)
	}
	for _, s := range settings {
		if err := s.apply(flags); err != nil {
			return fmt.Errorf("--config: %s: line %d: %w", c.path, s.line, err)
		}
	}
	return nil
}

// setting is a key of a file and what stands there.
type setting struct {
	key   string
	line  int // of the key
	value *yaml.Node
}

// readSettings reads a mapping. The errors of what it reads have the line in them.
func readSettings(from io.Reader) ([]setting, error) {
	decoder := yaml.NewDecoder(from)
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil // an empty file has no settings
	case err != nil:
		return nil, fmt.Errorf("%s", strings.TrimPrefix(cli.OneLine(err), "yaml: "))
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: a second document; want one", max(more.Line, document.Line))
	}
	if len(document.Content) == 0 {
		return nil, nil // nothing but comments
	}
	root := document.Content[0]
	if root.Tag == "!!null" {
		return nil, nil
	}
	return mapping(root)
}

// mapping returns what a mapping has, in the order in which it stands there.
func mapping(node *yaml.Node) ([]setting, error) {
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want a mapping, such as \"node-monitor-period: 5s\"", node.Line)
	}
	var settings []setting
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return nil, fmt.Errorf("line %d: want a plain name as the key", key.Line)
		}
		name := strings.ReplaceAll(key.Value, "_", "-")
		if first, twice := lines[name]; twice {
			return nil, fmt.Errorf("line %d: %q stands here twice, the first time in line %d", key.Line, key.Value, first)
		}
		lines[name] = key.Line
		settings = append(settings, setting{key: key.Value, line: key.Line, value: value})
	}
	return settings, nil
}

// apply sets the flag of that name.
func (s setting) apply(flags *pflag.FlagSet) error {
	f := flags.Lookup(s.key)
	switch {
	case f == nil:
		return unknownKey(s.key, flags)
	case f.Name == "help", f.Name == "config":
		return fmt.Errorf("%s: this is for the command line alone", s.key)
	}
	text, err := textOf(f.Value.Type(), s.value)
	if err != nil {
		return fmt.Errorf("%s: %w", s.key, err)
	}
	if f.Changed {
		return nil
	}
	if err := flags.Set(f.Name, text); err != nil {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = invalid.Unwrap()
		}
		return fmt.Errorf("%s: %s: %w", s.key, text, err)
	}
	return nil
}

func unknownKey(key string, flags *pflag.FlagSet) error {
	return fmt.Errorf("there is no key %q%s", key, nearest.Question("%q", key, cli.FlagNames(flags)))
}

// textOf returns the text of a flag of a kind, if that is what stands there.
func textOf(kind string, node *yaml.Node) (string, error) {
	switch {
	case node.Kind == yaml.AliasNode:
		return "", errors.New("want the value itself, not a reference to another one")
	case (kind == "stringSlice" || kind == "int32Slice") && node.Kind == yaml.SequenceNode:
		return listText(node)
	case kind == "gates" && node.Kind == yaml.MappingNode:
		return gatesText(node)
	case node.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("want %s", valueOf(kind))
	case node.Tag == "!!null", !fits(kind, node):
		return "", fmt.Errorf("%q: want %s", node.Value, valueOf(kind))
	}
	return node.Value, nil
}

// fits reports whether a scalar is a value of a kind. Texts are what is left: every scalar
// is one, so that a version needs no quotes.
func fits(kind string, node *yaml.Node) bool {
	var err error
	switch kind {
	case "bool":
		_, err = strconv.ParseBool(node.Value)
		return node.Tag == "!!bool" && err == nil
	case "int", "int32", "count", "level":
		_, err = strconv.ParseInt(node.Value, 0, strconv.IntSize)
		return node.Tag == "!!int" && err == nil
	case "float32", "float64":
		_, err = strconv.ParseFloat(node.Value, 64)
		return (node.Tag == "!!int" || node.Tag == "!!float") && err == nil
	case "duration":
		_, err = time.ParseDuration(node.Value)
		return node.Tag == "!!str" && err == nil
	case "ip":
		return net.ParseIP(node.Value) != nil
	}
	return true
}

func valueOf(kind string) string {
	switch want := cli.Wants(kind); {
	case want != "":
		return want
	case kind == "stringSlice", kind == "int32Slice":
		return "a list, or names with commas between them"
	case kind == "gates":
		return "a mapping of gates to true or false"
	}
	return "a text"
}

// listText joins a list as a flag has it.
func listText(node *yaml.Node) (string, error) {
	var all []string
	for _, item := range node.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || strings.ContainsAny(item.Value, ",\"\n") {
			return "", fmt.Errorf("line %d: want a name", item.Line)
		}
		all = append(all, item.Value)
	}
	return strings.Join(all, ","), nil
}

// gatesText joins a mapping of gates as a flag has it.
func gatesText(node *yaml.Node) (string, error) {
	settings, err := mapping(node)
	if err != nil {
		return "", err
	}
	var pairs []string
	for _, s := range settings {
		value, err := textOf("bool", s.value)
		if err != nil {
			return "", fmt.Errorf("line %d: %s: %w", s.line, s.key, err)
		}
		pairs = append(pairs, s.key+"="+value)
	}
	return strings.Join(pairs, ","), nil
}
