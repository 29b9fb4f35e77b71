// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/diff"
)

const (
	// context is how many lines around a change are shown, as everywhere.
	context = 3
	// mostCells is how large a table of common lines becomes: 16 MB. Texts that are
	// larger and have nothing in common at either end are shown as all old, then all new.
	mostCells = 4 << 20
)

// edit is one line of a comparison: in both texts (' '), in the old ('-') or the new ('+').
type edit struct {
	op   byte
	line string
}

// unified compares two texts line by line, as diff -u does. The lines have no newline. A text
// that does not end with one is marked.
func unified(a, b string) []string {
	edits := edits(a, b)
	var out []string
	oldLine, newLine := 1, 1 // the next of each text
	for from := 0; from < len(edits); {
		if edits[from].op == ' ' && !near(edits, from) {
			oldLine, newLine, from = oldLine+1, newLine+1, from+1
			continue
		}
		to, olds, news := from, 0, 0
		var hunk []string
		for ; to < len(edits) && (edits[to].op != ' ' || near(edits, to)); to++ {
			e := edits[to]
			if e.op != '+' {
				olds++
			}
			if e.op != '-' {
				news++
			}
			line, ended := strings.CutSuffix(e.line, "\n")
			hunk = append(hunk, string(e.op)+line)
			if !ended {
				hunk = append(hunk, `\ no newline at the end`)
			}
		}
		out = append(append(out, fmt.Sprintf("@@ -%s +%s @@", span(oldLine, olds), span(newLine, news))), hunk...)
		oldLine, newLine, from = oldLine+olds, newLine+news, to
	}
	return out
}

// near reports whether a change is within the context of a line.
func near(edits []edit, at int) bool {
	for i := max(at-context, 0); i <= min(at+context, len(edits)-1); i++ {
		if edits[i].op != ' ' {
			return true
		}
	}
	return false
}

func span(line, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, n)
}

// edits returns the lines of both texts, in order.
func edits(a, b string) []edit {
	from, to := slices.Collect(strings.Lines(a)), slices.Collect(strings.Lines(b))
	var all []edit
	i, j := 0, 0 // the next of each text
	upTo := func(oldEnd, newEnd int) {
		for ; i < oldEnd; i++ {
			all = append(all, edit{'-', from[i]})
		}
		for ; j < newEnd; j++ {
			all = append(all, edit{'+', to[j]})
		}
	}
	for _, same := range diff.Common(len(from), len(to), mostCells, func(i, j int) bool { return from[i] == to[j] }) {
		upTo(same[0], same[1])
		all = append(all, edit{' ', from[i]})
		i, j = i+1, j+1
	}
	upTo(len(from), len(to))
	return all
}
