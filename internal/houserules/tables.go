// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"fmt"
	"regexp"
	"strings"
)

// delimiter is the line below the heads of a table.
var delimiter = regexp.MustCompile(`^\|( *:?-+:? *\|)+$`)

// Tables holds that each row in a Markdown file belongs to a table: the second row is the line
// below the heads. An empty line ends a table, and the rows after it are shown as text.
func Tables(root string, files []string) ([]string, error) {
	var found []string
	err := eachFile(root, files, func(file string, text []byte) {
		if !strings.HasSuffix(file, ".md") {
			return
		}
		lines, code := strings.Split(string(text), "\n"), false
		for i, line := range lines {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			first := strings.HasPrefix(line, "|") && (i == 0 || !strings.HasPrefix(lines[i-1], "|"))
			if !code && first && (i+1 == len(lines) || !delimiter.MatchString(lines[i+1])) {
				found = append(found, fmt.Sprintf("%s:%d: a row of no table; is there an empty line before it?", file, i+1))
			}
		}
	})
	return found, err
}
