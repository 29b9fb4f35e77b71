// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// pages are the documents of this command, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/watch*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// notOurs are flags of other programs that the pages name: kubectl and base64.
var notOurs = map[string]bool{"from-file": true, "decode": true}

func TestTheFlagsInTheDocumentsAreThere(t *testing.T) {
	world, _ := testWorld(nil)
	known := map[string]bool{}
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(rootCommand(&runCommand{w: world}))
	flag := regexp.MustCompile("(?:^|[ `(|])--([a-z][-a-z]+)")
	for page, text := range pages(t) {
		for _, found := range flag.FindAllStringSubmatch(text, -1) {
			if name := found[1]; !known[name] && !notOurs[name] {
				t.Errorf("%s: there is no flag --%s", page, name)
			}
		}
	}
}

func TestTheFirstPageBeginsWithTheCommand(t *testing.T) {
	const title = "# `setpoint watch`\n\n"
	read := regexp.MustCompile(`<!--.*-->\n+`).ReplaceAllString(pages(t)["watch.md"], "") // a reader sees no comments
	text, ok := strings.CutPrefix(read, title)
	if !ok || !strings.HasPrefix(text, "`setpoint watch` ") {
		t.Errorf("the page begins with %q", text[:min(len(text), 60)])
	}
}

// The example of a hidden value is what is printed, but for the digits, which are others
// after each start.
func TestHiddenValuesLookAsTheDocumentsSay(t *testing.T) {
	kind := event.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	secret := func(value string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "login", "namespace": "a", "uid": "u", "resourceVersion": value},
			"data": map[string]any{"password": value},
		}
	}
	e := observe.New(observe.Options{Kind: kind, Key: []byte("k")}).Event(observe.Change{Verb: event.Updated, Old: secret("1"), New: secret("2")})
	printed := ""
	for _, form := range []format.Form{format.Text, format.Diff, format.JSON} {
		var out bytes.Buffer
		if err := format.New(&out, format.Options{Form: form}).Write(e); err != nil {
			t.Fatal(err)
		}
		printed += out.String()
	}
	digits := regexp.MustCompile(`\(hidden [0-9a-f]{6}\)`)
	printed = digits.ReplaceAllString(printed, "(hidden)")
	_, example, _ := strings.Cut(pages(t)["watch-hidden.md"], "```\n")
	example, _, _ = strings.Cut(example, "\n```")
	for line := range strings.Lines(digits.ReplaceAllString(example, "(hidden)")) {
		if line = strings.TrimSpace(line); line == "" || !strings.Contains(printed, line) {
			t.Errorf("nobody prints %q; this is printed:\n%s", line, printed)
		}
	}
}
