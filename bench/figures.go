// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A page of figures names the cases that it has:
//
//	<!-- bench: loop --turns 5 -->
//	what "go run . loop --turns 5" found, as a table
//	<!-- end of bench -->
//
// So the page is the plan of its own measurement, and a case is added to it by writing two lines.
var (
	blockOfFigures = regexp.MustCompile(`(?s)<!-- bench: ([a-z][^\n]*?) -->\n(.*?)<!-- end of bench -->`)
	startOfCase    = regexp.MustCompile(`<!-- bench:`)
)

// runFigures measures every case that a page names, writes what was found into the page, and says what got worse.
func runFigures(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("figures", flag.ContinueOnError)
	flags.SetOutput(out)
	path := flags.String("page", filepath.Join("..", "docs", "performance.md"), "`file` with the tables, which are written anew")
	only := flags.String("only", "", "of the commands in the page, those that begin with one of these, by comma, such as \"cache,manager --case jobs\"")
	dry := flags.Bool("n", false, "print the commands alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("figures: %q is no flag; go run . figures -h lists the flags", flags.Arg(0))
	}
	commands, err := commandsOf(*path, *only)
	if err != nil {
		return err
	}
	var failed error
	worse := []string{}
	for _, command := range commands {
		fmt.Fprintf(out, "# go run . %s\n", command)
		if *dry {
			continue
		}
		text, err := measured(ctx, command, out)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("go run . %s: %w; its table stays as it was", command, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		change, err := putInto(*path, command, text) // at once: a run of everything takes hours, and may be ended
		if err != nil {
			return errors.Join(failed, err)
		}
		worse = append(worse, change...)
	}
	for _, w := range worse {
		fmt.Fprintln(out, "worse:", w)
	}
	return failed
}

// commandsOf returns the commands in a page, in its order.
func commandsOf(path, only string) (commands []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := blockOfFigures.FindAllSubmatch(text, -1)
	if len(found) != len(startOfCase.FindAll(text, -1)) {
		return nil, fmt.Errorf("%s: want \"<!-- bench: CASE -->\" and \"<!-- end of bench -->\" around each table, on lines of their own", path)
	}
	for _, m := range found {
		command := string(m[1])
		switch _, ok := cases[strings.Fields(command)[0]]; {
		case !ok:
			return nil, fmt.Errorf("%s: there is no case %q", path, command)
		case slices.Contains(commands, command):
			return nil, fmt.Errorf("%s has the table of %q twice", path, command)
		}
		if only == "" || slices.ContainsFunc(strings.Split(only, ","), func(o string) bool { return strings.HasPrefix(command, strings.TrimSpace(o)) }) {
			commands = append(commands, command)
		}
	}
	if len(commands) == 0 {
		return nil, fmt.Errorf("%s: there is no table to write, or none that begins with %q", path, only)
	}
	return commands, nil
}

// measured runs a case and returns its table, with a line that says when, where and how.
func measured(ctx context.Context, command string, out io.Writer) (string, error) {
	args := strings.Fields(command)
	notes := &notes{Writer: out}
	load, began := loadAverage(), time.Now()
	if err := cases[args[0]].run(ctx, args[1:], notes); err != nil {
		return "", err
	}
	if len(notes.measures) == 0 {
		return "", errors.New("it measured nothing")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "`go run . %s`: %s; %s, %s, load average before %s\n\n", command, strings.Join(notes.heads, "; "),
		began.UTC().Format(time.DateOnly), time.Since(began).Round(time.Second), load)
	b.WriteString(headOfTable)
	for _, m := range notes.measures {
		r := rowOf(m)
		b.WriteString(r.String())
	}
	return b.String(), nil
}

// putInto writes the table of a command into a page, and returns what is worse than in the table that was there.
func putInto(path, command, table string) (worse []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	head := []byte("<!-- bench: " + command + " -->\n")
	at := bytes.Index(text, head)
	if at < 0 {
		return nil, fmt.Errorf("%s has no table of %q any more", path, command)
	}
	at += len(head)
	end := bytes.Index(text[at:], []byte("<!-- end of bench -->"))
	if end < 0 {
		return nil, fmt.Errorf("%s: the table of %q has no end", path, command)
	}
	worse = regressions(rowsOf(string(text[at:at+end])), rowsOf(table))
	return worse, os.WriteFile(path, slices.Concat(text[:at], []byte("\n"+table+"\n"), text[at+end:]), 0o644) //nolint:gosec // the page is for all readers
}

// notes is the output of a case, of which it keeps the measures, and the lines that say what is measured and where.
type notes struct {
	io.Writer

	measures []measure
	heads    []string
	started  bool // a turn has begun: the lines after it are about single turns
}

func (n *notes) collect(m *measure) { n.measures = append(n.measures, *m) }

// Write implements io.Writer. The lines of a head are written one at a time.
func (n *notes) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		text, isNote := strings.CutPrefix(strings.TrimSpace(line), "# ")
		n.started = n.started || !isNote || strings.HasPrefix(text, "turn ")
		if !n.started || strings.HasPrefix(text, playedAgain) || strings.HasPrefix(text, leftOut) {
			n.heads = append(n.heads, text)
		}
	}
	return n.Writer.Write(b)
}
