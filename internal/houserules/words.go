// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// A phrase is one that no sentence has. The patterns are spelled so that they do not find
// themselves.
type phrase struct {
	// sign is in each line that the pattern matches. Most lines do not have it, and the search for
	// it costs little: before, the patterns were two thirds of the profile of this package's tests.
	sign    string
	pattern *regexp.Regexp
	instead string // what to write
	// tests is set if the tests keep the rule too. They have objects and users without a
	// role, which are named after that.
	tests bool
}

var phrases = []phrase{
	// Sentences whose subject has no name, such as "Who reads it …". A reader whose first
	// language is another one stumbles over them, and does not learn which part of the
	// program is meant. A question in a heading is none.
	{
		"ho", regexp.MustCompile(`[Ww]hoe[v]er\b|(?:^|[.:;] |^\s*(?://|-|//\s+-)\s*)Who [a-z]|\b(?:by|for|from|of|than|to|with) who [a-z]`),
		"name the part of the program or the person that is meant", true,
	},
	// Persons without a role. A controller, a client, a user and an administrator have
	// one; "no client" and "another process" are as short.
	{
		"bo" + "dy", regexp.MustCompile(`\b(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)bod[y]\b`),
		"name the role: a client, a user, another process, no controller", false,
	},
	// What a program does with a lease, a key or a finalizer has a verb of its own.
	{
		"g" + "o of", regexp.MustCompile(`\b[Ll]et(?:s|ting)? g[o] of\b`),
		"write release, remove or drop", false,
	},
	{
		"ed ", regexp.MustCompile(`\b[Ss]erved no mor[e]\b|\b[Ww]atched o[n] in\b`),
		"write no longer served, or still watched", false,
	},
}

// Words holds that sentences in source files and documents have none of the phrases. The
// changelog is left out: it is history.
func Words(root string, files []string) (found []string, err error) {
	err = eachFile(root, files, func(file string, text []byte) {
		if !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".md") || file == "CHANGELOG.md" {
			return
		}
		test := strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/")
		eachLine(text, func(number int, line []byte) {
			for _, p := range phrases {
				if test && !p.tests {
					continue
				}
				if !bytes.Contains(line, []byte(p.sign)) {
					continue
				}
				if match := p.pattern.Find(line); match != nil {
					found = append(found, fmt.Sprintf("%s:%d: %q: %s", file, number, bytes.TrimSpace(match), p.instead))
				}
			}
		})
	})
	return found, err
}
