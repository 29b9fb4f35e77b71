// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// each calls f with a command and with all below it.
func each(d described, f func(described)) {
	f(d)
	for _, c := range d.Commands {
		each(c, f)
	}
}

func TestEachCommandHasAPageWithAllItsFlags(t *testing.T) {
	t.Parallel()
	bin := built(t)[host]
	pages, err := testRelease(t).manual(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	for _, program := range []string{"setpoint", "setpoint-watch", "setpoint-generate"} {
		root, err := describe(t.Context(), filepath.Join(bin, program))
		if err != nil {
			t.Fatal(err)
		}
		each(root, func(d described) {
			page := string(pages[d.fileOf()])
			if !strings.HasPrefix(page, ".TH ") || !strings.Contains(page, escape(d.Short)) {
				t.Errorf("the page of %q begins with %.80q", d.Name, page)
			}
			for _, f := range d.Flags {
				flags++
				if program == "setpoint" && (d.Name == "setpoint watch" || d.Name == "setpoint generate") {
					continue // the page is that of the other program
				}
				if !strings.Contains(page, bold("--"+f.Name)) {
					t.Errorf("the page of %q lacks --%s", d.Name, f.Name)
				}
			}
		})
	}
	if flags < 100 {
		t.Errorf("the commands have %d flags, want those of the manager and of the watch", flags)
	}
}

func TestEachCommandThatTheHelpListsHasAPage(t *testing.T) {
	t.Parallel()
	bin := built(t)[host]
	pages, err := testRelease(t).manual(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, prefix string
		help            []string
		among           []string // commands that the list must have, so that it is one
	}{
		{"setpoint", "setpoint", []string{"help"}, []string{"up", "manager", "watch", "new", "generate", "version", "completion"}},
		{"setpoint", "setpoint-manager", []string{"manager", "--help"}, []string{"rbac"}},
		{"setpoint-watch", "setpoint-watch", []string{"--help"}, []string{"check", "manifests"}},
	} {
		help, err := output(t.Context(), filepath.Join(bin, c.program), c.help...)
		if err != nil {
			t.Fatal(err)
		}
		listed := listedIn(string(help))
		for _, command := range c.among {
			if !slices.Contains(listed, command) {
				t.Errorf("the help of %s lists %q, without %s", c.prefix, listed, command)
			}
		}
		for _, command := range listed {
			// The page of setpoint-help(1) would say what setpoint(1) does.
			if page := c.prefix + "-" + command + ".1"; command != "help" && pages[page] == nil {
				t.Errorf("the help of %s lists %s, and there is no page %s", c.prefix, command, page)
			}
		}
	}
	for name, page := range pages {
		for _, other := range regexp.MustCompile(`\\fB([a-z\\-]+)\\fR\(1\)`).FindAllStringSubmatch(string(page), -1) {
			if file := strings.ReplaceAll(other[1], `\-`, "-") + ".1"; pages[file] == nil {
				t.Errorf("%s refers to %s, and there is no such page", name, file)
			}
		}
	}
}

// listedIn returns the commands in a help text: the first word of each line below "Available
// Commands:", up to an empty line.
func listedIn(help string) []string {
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var commands []string
	for line := range strings.Lines(list) {
		if words := strings.Fields(line); len(words) > 0 {
			commands = append(commands, words[0])
		}
	}
	return commands
}

func TestAPageShowsTextsAsTheyAre(t *testing.T) {
	d := described{
		Name: "x y", Usage: "x y [flags]", Short: "Do it", Long: "First -v\nline.\n\nThe names are\n  a: '*'\n  .b\n\n.c\\d",
		Example:  "  # one\n  x y\n\n  x",
		Flags:    []flagDescribed{{Name: "to", Shorthand: "t", Value: "file", Default: "a-b", Usage: "where"}, {Name: "all", Usage: "everything"}},
		Commands: []described{{Name: "x y z", Short: "More"}},
	}
	want := `.TH "X\-Y" 1 "2023\-11\-14" "setpoint v1.2.3" "Setpoint"
.SH NAME
x\-y \- Do it
.SH SYNOPSIS
.nf
x y [flags]
.fi
.SH DESCRIPTION
First \-v
line.
.PP
The names are
.nf
  a: \(aq*\(aq
  .b
.fi
.PP
\&.c\ed
.SH OPTIONS
.TP
\fB\-t\fR, \fB\-\-to\fR \fIfile\fR
where (default a\-b)
.TP
\fB\-\-all\fR
everything
.SH EXAMPLES
.nf
# one
x y
.sp
x
.fi
.SH SEE ALSO
\fBx\fR(1), \fBx\-y\-z\fR(1)
`
	if got := string(testRelease(t).page(d, &described{Name: "x"})); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
}
