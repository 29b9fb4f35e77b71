// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"strings"
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

// unified compares two texts line by line, as diff -u does. Lines have no newline; a text
// that does not end with one is said so.
func unified(a, b string) []string {
	edits := compare(split(a), split(b))
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

// split returns the lines of a text with their newlines.
func split(s string) []string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, line)
	}
	return lines
}

// compare returns the lines of both texts, in order, with the longest common subsequence in
// common.
func compare(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	same := 0
	for same < min(len(a), len(b)) && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	for _, line := range a[len(a)-same:] {
		tail = append(tail, edit{' ', line})
	}
	a, b = a[:len(a)-same], b[:len(b)-same]
	return append(append(head, middle(a, b)...), tail...)
}

// middle is compare for what is between.
func middle(a, b []string) []edit {
	var edits []edit
	if (len(a)+1)*(len(b)+1) > mostCells {
		for _, line := range a {
			edits = append(edits, edit{'-', line})
		}
		for _, line := range b {
			edits = append(edits, edit{'+', line})
		}
		return edits
	}
	// common[i*w+j] is how many lines a[i:] and b[j:] have in common.
	w := len(b) + 1
	common := make([]int32, (len(a)+1)*w)
	for i, old := range slices.Backward(a) {
		for j, now := range slices.Backward(b) {
			if old == now {
				common[i*w+j] = common[(i+1)*w+j+1] + 1
			} else {
				common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*w+j] >= common[i*w+j+1]:
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}
