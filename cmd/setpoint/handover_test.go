// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// besideScript is a world in which setpoint-watch is a shell script.
func besideScript(t *testing.T, script string) *cli.World {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, watchProgram), []byte("#!/bin/sh\n"+script), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+"/nothing")
	var said bytes.Buffer
	return &cli.World{
		Stdout: &said, Stderr: &said, Getenv: func(string) string { return "" }, Executable: filepath.Join(dir, "setpoint"),
		Environ: []string{"WHO=me"},
	}
}

func TestWatchSaysWhereItsProgramWasLookedForAndHowToGetIt(t *testing.T) {
	for _, args := range [][]string{{"watch", "pods"}, {"watch", "--help"}, {"help", "watch"}} {
		w := besideScript(t, "")
		run(t.Context(), w, args)
		said := w.Stderr.(*bytes.Buffer).String()
		for _, want := range []string{
			"setpoint-watch, which is neither in " + filepath.Dir(w.Executable) + " nor in PATH",
			"run \"go install github.com/setpoint-io/setpoint/cmd/setpoint-watch@latest\"",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("%q: %s, want %q", args, said, want)
			}
		}
	}
}

func TestTheCommandThatGetsAProgramFitsTheOneThatNeedsIt(t *testing.T) {
	const install = "github.com/setpoint-io/setpoint/generate/cmd/setpoint-generate"
	checkout := t.TempDir()
	if err := os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("module "+cli.ModulePath+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ version, executable, want string }{
		"a release":                 {"v0.3.0", "/usr/bin/setpoint", "go install " + install + "@v0.3.0"},
		"a build of a commit":       {"v0.3.0-4-g0123abc", "/usr/bin/setpoint", "go install " + install + "@latest"},
		"a build in a checkout":     {"v0.3.0-4-g0123abc", filepath.Join(checkout, "bin", "setpoint"), "\"make setpoint-generate\" in " + checkout},
		"a release, in a checkout":  {"v0.3.0", filepath.Join(checkout, "bin", "setpoint"), "\"make setpoint-generate\" in " + checkout},
		"a build without a version": {"", "/usr/bin/setpoint", "go install " + install + "@latest"},
	} {
		t.Run(name, func(t *testing.T) {
			w := besideScript(t, "")
			w.Executable = c.executable
			w.Run(t.Context(), generateCommand(w, c.version), "setpoint", nil)
			if said := w.Stderr.(*bytes.Buffer).String(); !strings.Contains(said, c.want) {
				t.Errorf("%s, want %q", said, c.want)
			}
		})
	}
}

func TestCompletionsOfWatchAreThoseOfItsProgram(t *testing.T) {
	w := besideScript(t, `echo "$WHO $*"; echo "pods	po"; echo :6; echo for people >&2`)
	if status := run(t.Context(), w, []string{cobra.ShellCompRequestCmd, "watch", "-n", "team-a", "po"}); status != 0 {
		t.Errorf("status %d", status)
	}
	want := "me __complete -n team-a po\npods\tpo\n:6\n"
	if said := w.Stdout.(*bytes.Buffer).String(); !strings.HasPrefix(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

func TestFlagsOfWatchAreCompletedByItsProgram(t *testing.T) {
	w := besideScript(t, `echo "$*"; echo :4`)
	run(t.Context(), w, []string{cobra.ShellCompRequestCmd, "watch", "--sh"})
	if said := w.Stdout.(*bytes.Buffer).String(); !strings.HasPrefix(said, "__complete --sh\n:4\n") {
		t.Errorf("%q", said)
	}
}

func TestCompletionWithoutTheProgramSaysSo(t *testing.T) {
	w := besideScript(t, "")
	run(t.Context(), w, []string{cobra.ShellCompRequestCmd, "watch", ""})
	if said := w.Stdout.(*bytes.Buffer).String(); !strings.Contains(said, "go install") {
		t.Errorf("%q", said)
	}
}

func TestWhatIsNoListOfCompletionsIsAnError(t *testing.T) {
	for _, text := range []string{"", "pods\n", "pods\n4\n", ":x\n", ":\n"} {
		if got, directive := parseCompletions(text); directive != cobra.ShellCompDirectiveError || got != nil {
			t.Errorf("%q: %q, %d", text, got, directive)
		}
	}
	if got, directive := parseCompletions(":4\n"); directive != 4 || len(got) != 0 {
		t.Errorf("none: %q, %d", got, directive)
	}
	if got, _ := parseCompletions("a\tb\nc\n:0\n"); !slices.Equal(got, []string{"a\tb", "c"}) {
		t.Errorf("%q", got)
	}
}

func FuzzParseCompletions(f *testing.F) {
	f.Add("a\tb\nc\n:0\n")
	f.Fuzz(func(_ *testing.T, text string) { parseCompletions(text) })
}
