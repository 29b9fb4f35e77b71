// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package methodtest

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// An Interface is one of which a document has a table.
type Interface struct {
	Name string // as in the heading: "cache.Store"
	Type reflect.Type
}

// Of returns an interface by its type.
func Of[T any](name string) Interface { return Interface{name, reflect.TypeFor[T]()} }

// Check compares the tables of a document with the methods of interfaces and with what comparisons
// show. It returns what is wrong.
func Check(document string, interfaces []Interface, shown Shown) (wrong []string) {
	known := map[string]bool{}
	for _, i := range interfaces {
		rows := tableOf(document, i.Name)
		if len(rows) == 0 {
			wrong = append(wrong, fmt.Sprintf("there is no table below a heading %s", i.Name))
			continue
		}
		for m := range i.Type.Methods() {
			name := i.Name + "." + m.Name
			known[name] = true
			claim, ok := rows[m.Name]
			if !ok {
				wrong = append(wrong, fmt.Sprintf("the table of %s has no row for %s", i.Name, m.Name))
				continue
			}
			delete(rows, m.Name)
			wrong = append(wrong, unshown(name, claim, shown)...)
		}
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			wrong = append(wrong, fmt.Sprintf("the table of %s has a row for %s, which is no method of it", i.Name, name))
		}
	}
	for _, methods := range []map[string]bool{shown.Same, shown.Differs} {
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			if !known[name] {
				wrong = append(wrong, fmt.Sprintf("a comparison is of %s, which is no method of these interfaces", name))
			}
		}
	}
	return wrong
}

// same is how the claim of a method begins that does what the peer's does.
const same = "As in"

// unshown returns what a row claims, or leaves out, other than the comparisons show.
func unshown(name, claim string, shown Shown) (wrong []string) {
	claimed := strings.HasPrefix(claim, same)
	// A claim with a restriction, "As in client-go; ...", needs both.
	whole := claimed && !strings.ContainsAny(claim, ";.,")
	if claimed && !shown.Same[name] {
		wrong = append(wrong, fmt.Sprintf("%s: %q, and no comparison shows it", name, claim))
	}
	if !whole && !shown.Differs[name] {
		wrong = append(wrong, fmt.Sprintf("%s: %q, and no comparison shows a difference", name, claim))
	}
	if whole && shown.Differs[name] {
		wrong = append(wrong, fmt.Sprintf("%s: %q, and a comparison shows a difference", name, claim))
	}
	return wrong
}

var (
	headings = regexp.MustCompile("^#+ +(.*)$")
	row      = regexp.MustCompile(`^\| (.*?) \| (.*) \|$`)
	code     = regexp.MustCompile("`([A-Za-z]+)`")
)

// tableOf returns the claims of the rows below a heading by method.
func tableOf(document, name string) map[string]string {
	rows, within := map[string]string{}, false
	for line := range strings.SplitSeq(document, "\n") {
		if m := headings.FindStringSubmatch(line); m != nil {
			within = strings.Trim(m[1], "`") == name
			continue
		}
		m := row.FindStringSubmatch(line)
		if !within || m == nil {
			continue
		}
		for _, method := range code.FindAllStringSubmatch(m[1], -1) {
			rows[method[1]] = strings.TrimSpace(m[2])
		}
	}
	return rows
}
