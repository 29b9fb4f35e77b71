// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/cli"
)

var update = flag.Bool("update", false, "write the tables of flags again")

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
	documented(t, tableBegins, tableEnds, "| flag | default | |\n|---|---|---|\n"+strings.Join(flagRows(), ""))
}

// documented holds that a table is in the documentation, between two comments.
func documented(t *testing.T, begin, end, table string) {
	t.Helper()
	const file = "../../docs/command-line.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	is, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no table between\n%sand\n%s", file, begin, end)
	}
	want := "\n" + table + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if is != want {
		t.Errorf("%s has\n%s\nwant (go test ./cmd/setpoint -run Documented -update writes it)\n%s", file, is, want)
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
	if by := d.StoppedBy(); by != nil && by.Name == f.Name {
		return "; with 0 or less the controller is not started, with a warning"
	}
	if err := f.Check(); err != nil {
		if _, bounds, ok := strings.Cut(err.Error(), ": want "); ok && !strings.Contains(f.Usage, bounds) {
			return ", " + bounds
		}
	}
	return ""
}

func TestTheFlagsWithoutEffectAreDocumentedWithTheirReasons(t *testing.T) {
	documented(t, "<!-- The flags without effect: go test ./cmd/setpoint -run Documented -update writes them. -->\n",
		"<!-- The end of the flags without effect. -->\n", "| flags | why they have no effect |\n|---|---|\n"+strings.Join(idleRows(t), ""))
}

// idleRows are the rows of the flags of "setpoint manager" whose help says that they have no
// effect. Flags with the same reason are in one row.
func idleRows(t *testing.T) (rows []string) {
	t.Helper()
	manager, _, err := rootCommand(&cli.World{}).Find([]string{"manager"})
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string][]string{} // by reason
	manager.Flags().VisitAll(func(f *pflag.Flag) {
		if reason, idle := strings.CutPrefix(f.Usage, "no effect: "); idle && !f.Hidden {
			flags[reason] = append(flags[reason], "`--"+f.Name+"`")
		}
	})
	for _, reason := range slices.Sorted(maps.Keys(flags)) {
		rows = append(rows, fmt.Sprintf("| %s | %s |\n", strings.Join(flags[reason], ", "), reason))
	}
	slices.Sort(rows)
	return rows
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
