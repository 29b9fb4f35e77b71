// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// nameless finds sentences whose subject has no name, such as "Who reads it …". A reader whose first language is another one stumbles over them, and does not learn which
// part of the program is meant. A question in a heading is none. The patterns are spelled so that
// they do not find themselves.
var nameless = regexp.MustCompile(`[Ww]hoe[v]er\b|(?:^|[.:;] |^\s*(?://|-|//\s+-)\s*)Who [a-z]|\b(?:by|for|from|of|than|to|with) who [a-z]`)

// Words holds that sentences in source files and documents have a subject with a name.
func Words(root string, files []string) (found []string, err error) {
	err = eachFile(root, files, func(file string, text []byte) {
		if !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".md") {
			return
		}
		eachLine(text, func(number int, line []byte) {
			if match := nameless.Find(line); match != nil {
				found = append(found, fmt.Sprintf("%s:%d: %q: name the part of the program or the person that is meant", file, number, bytes.TrimSpace(match)))
			}
		})
	})
	return found, err
}
