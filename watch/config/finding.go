// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Finding is a mistake in a configuration, or a warning about it.
type Finding struct { //nolint:errname // warnings are findings too, and no errors
	// File is the name that Parse was given.
	File string
	// Line and Column count from 1, Column in characters. Column is 0 where only the line is
	// known, Line where the whole file is meant.
	Line, Column int
	// Text says what is wrong, and what to do. No secret is in it.
	Text string
	// Excerpt is the line of the file with a caret under the mistake, for mistakes inside of
	// conditions; otherwise empty.
	Excerpt string
}

// Error returns "file:line:column: what is wrong", and the excerpt below it if there is one.
func (f *Finding) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
		if f.Column > 0 {
			fmt.Fprintf(&b, ":%d", f.Column)
		}
	}
	b.WriteString(": " + f.Text)
	if f.Excerpt != "" {
		b.WriteString("\n" + f.Excerpt)
	}
	return b.String()
}

// mostFindings is how many mistakes are reported at once: a file that is no configuration must
// not fill the terminal.
const mostFindings = 100

// findings are what was found so far.
type findings struct {
	list []*Finding
	more int // findings that were not kept
}

func (f *findings) full() bool { return len(f.list) >= mostFindings }

func (f *findings) add(found *Finding) {
	if f.full() {
		f.more++
		return
	}
	f.list = append(f.list, found)
}

// sorted returns them in the order of the file, each once: a value behind an alias is read as
// often as the alias is used.
func (f *findings) sorted() []*Finding {
	slices.SortStableFunc(f.list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(f.list, func(a, b *Finding) bool { return *a == *b })
}

// err joins them, or returns nil.
func (f *findings) err() error {
	if len(f.list) == 0 {
		return nil
	}
	var errs []error
	for _, found := range f.sorted() {
		errs = append(errs, found)
	}
	if f.more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more; these are the first %d", f.list[0].File, f.more, mostFindings))
	}
	return errors.Join(errs...)
}
