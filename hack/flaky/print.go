// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// progress is what the testing package prints only in its verbose mode, which
// go test -json switches on.
var progress = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME|ATTR) `)

// frame is the line that says how a test went.
var frame = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): `)

// printPackage prints the results of a package as go test does without -v:
// one line if it passed, and otherwise the tests that failed, with their output.
func printPackage(w io.Writer, p *packageRun) {
	if p.result != "fail" {
		lines := strings.Split(strings.TrimRight(p.output.String(), "\n"), "\n")
		fmt.Fprintln(w, lines[len(lines)-1])
		return
	}
	var all strings.Builder
	failed := p.names(failedOrNoResult)
	for _, name := range failed {
		all.WriteString(p.outputOf(name))
	}
	if len(failed) == 0 && len(p.tests) > 0 {
		// The process failed after its tests. What it printed then counts as output of the last test.
		last := p.tests[len(p.tests)-1]
		fmt.Fprintf(&all, "no test failed; the last output, with that of %s, is\n%s", last.name, strings.Join(p.latest, ""))
	}
	all.WriteString(p.output.String())
	fmt.Fprint(w, all.String())
}

func failedOrNoResult(t *testRun) bool { return t.result == "fail" || t.result == "" && !t.paused }

// outputOf is the output of a test and of its subtests that failed or have no
// result, in the order of go test without -v: how it went before what it printed.
func (p *packageRun) outputOf(name string) string {
	var all strings.Builder
	for _, t := range p.tests {
		if t.name != name && (!strings.HasPrefix(t.name, name+"/") || !failedOrNoResult(t)) {
			continue
		}
		var how, what strings.Builder
		for line := range strings.Lines(t.output.String()) {
			switch {
			case progress.MatchString(line):
			case frame.MatchString(line):
				how.WriteString(line)
			default:
				what.WriteString(line)
			}
		}
		all.WriteString(how.String())
		all.WriteString(what.String())
	}
	return all.String()
}

// excerpt is text, or its first and last lines if it has more than twice as
// many as that.
func excerpt(text string, lines int) string {
	all := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	if len(all) > 2*lines {
		left := len(all) - 2*lines
		all = append(append(append([]string(nil), all[:lines]...), fmt.Sprintf("[%d lines are left out here]\n", left)), all[len(all)-lines:]...)
	}
	return strings.Join(all, "") + "\n"
}
