// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A block of YAML in the documents is a configuration, or a part of one.
func TestTheExamplesInTheDocumentsAreRight(t *testing.T) {
	for file, least := range map[string]int{"watch-config.md": 3, "watch-sinks.md": 5, "watch.md": 1} {
		text, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		examples := 0
		for i, block := range strings.Split(string(text), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if !strings.HasPrefix(block, "apiVersion:") {
				block = head + block
			}
			c, err := Parse([]byte(block), file)
			if err != nil {
				t.Errorf("%s, example %d: %v\n%s", file, i+1, err, block)
				continue
			}
			for _, warning := range c.Warnings() {
				t.Errorf("%s, example %d: %v", file, i+1, warning)
			}
			examples++
		}
		if examples < least {
			t.Errorf("%s has %d examples, want at least %d", file, examples, least)
		}
	}
}

func TestEveryKeyIsInTheDocuments(t *testing.T) {
	pages := map[string]string{}
	for _, file := range []string{"watch-config.md", "watch-sinks.md"} {
		text, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		pages[file] = string(text)
	}
	for _, path := range schemaPaths(t) {
		page, key := "watch-config.md", path[strings.LastIndex(path, ".")+1:]
		if strings.HasPrefix(path, "sinks[].") && strings.Count(path, ".") > 1 {
			page = "watch-sinks.md"
		}
		if !slices.ContainsFunc([]string{"`" + key + "`", "`" + key + ":", " " + key + ":"}, func(as string) bool { return strings.Contains(pages[page], as) }) {
			t.Errorf("%s says nothing of %s", page, path)
		}
	}
}
