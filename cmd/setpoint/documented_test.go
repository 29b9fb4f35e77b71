// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/cli"
)

var update = flag.Bool("update", false, "write the table of the controllers' flags again")

// The table of flags in the documentation lies between these.
const (
	tableBegins = "<!-- The flags that controllers declare: go test ./cmd/setpoint -run Documented -update writes them. -->\n"
	tableEnds   = "<!-- The end of what controllers declare. -->\n"
)

func TestEveryCommandIsDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	introduction, sections, _ := strings.Cut(string(document), "\n## ")
	for _, c := range rootCommand(&cli.World{}).Commands() {
		if !strings.Contains(introduction, "`"+c.Name()+"`") {
			t.Errorf("the introduction of docs/command-line.md does not name setpoint %s", c.Name())
		}
		if !strings.Contains("\n## "+sections, "\n## `setpoint "+c.Name()+"`\n") {
			t.Errorf("docs/command-line.md has no section about setpoint %s", c.Name())
		}
	}
}

func TestTheFlagsOfControllersAreDocumentedAsTheyAreDeclared(t *testing.T) {
	const file = "../../docs/command-line.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	table, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no table between\n%sand\n%s", file, tableBegins, tableEnds)
	}
	want := "\n| flag | default | |\n|---|---|---|\n" + strings.Join(flagRows(), "") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("%s has\n%s\nwant (go test ./cmd/setpoint -run Documented -update writes it)\n%s", file, table, want)
	}
}

// flagRows are the rows of all declared flags, by controller: some explain the next one.
func flagRows() []string {
	var rows []string
	for _, d := range registry.Known() {
		for _, f := range d.Flags {
			_, byDefault, _ := strings.Cut(f.String(), "=")
			rows = append(rows, fmt.Sprintf("| `--%s` | %s | %s |\n", f.Name, byDefault, f.Usage+atZero(d, f)))
		}
	}
	return rows
}

// atZero says what 0 of a flag does.
func atZero(d *controllers.Descriptor, f controllers.Flag) string {
	switch into := f.Into.(type) {
	case *int:
		defer func(n int) { *into = n }(*into)
		*into = 0
	case *time.Duration:
		defer func(d time.Duration) { *into = d }(*into)
		*into = 0
	default:
		return ""
	}
	if d.StoppedBy() != nil {
		return "; with 0 or less the controller is not started, with a warning"
	}
	if err := f.Check(); err != nil {
		if _, bounds, ok := strings.Cut(err.Error(), ": want "); ok && !strings.Contains(f.Usage, bounds) {
			return ", " + bounds
		}
	}
	return ""
}

func TestTheGatesOfControllersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range registry.Known() {
		for _, g := range d.Gates {
			if !strings.Contains(string(text), "\n| `"+g.Name+"` |") {
				t.Errorf("docs/command-line.md has no row for the gate %s, which %s obeys", g.Name, d.Name)
			}
		}
	}
}
