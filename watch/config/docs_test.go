// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// A block of YAML in the documents is a configuration, or a part of one.
func TestTheExamplesInTheDocumentsAreRight(t *testing.T) {
	for _, b := range documenttest.Blocks(t) {
		text := b.Text
		if !strings.HasPrefix(text, "apiVersion:") {
			text = head + text
		}
		c, err := Parse([]byte(text), b.File)
		if err != nil {
			t.Errorf("%s: %v\n%s", b, err, text)
			continue
		}
		for _, warning := range c.Warnings() {
			t.Errorf("%s: %v", b, warning)
		}
	}
}

// The mistake is one in a condition that the document shows without it.
func TestTheMistakeInTheDocumentIsFound(t *testing.T) {
	for _, b := range documenttest.Blocks(t) {
		text, err := os.ReadFile("../../" + b.File)
		if err != nil {
			t.Fatal(err)
		}
		_, example, _ := strings.Cut(string(text), "```yaml\nwatch:\n")
		example, _, _ = strings.Cut(example, "```")
		wrong := strings.Replace(example, "!object.", "!objekt.", 1)
		_, err = Parse([]byte(head+"watch:\n"+wrong), "config.yaml")
		if wrong == example || err == nil || !documenttest.Same(b.Text, err.Error()) {
			t.Errorf("%s shows\n%s\nthe mistake is\n%v", b, b.Text, err)
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
