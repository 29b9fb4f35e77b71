// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// lettersAnEdit is how many letters of a name allow one edit. With fewer, a name and
	// what is said to be near it have nothing in common.
	lettersAnEdit = 3
	// leastBeginning is how many letters of a name, at least, stand for the whole of it.
	leastBeginning = 3
)

// Name returns the known name that a user may have meant by a name that does not exist, or ""
// if none is near: the first of those with the fewest edits, one for each three letters at
// most. Edits are letters inserted, left out or replaced, and neighbours swapped. If there is
// none, it is the only name that begins with what was written.
func Name(written string, known []string) string {
	best, fewest := "", 0
	for _, name := range known {
		most := max(utf8.RuneCountInString(written), utf8.RuneCountInString(name)) / lettersAnEdit
		if edits := distance(written, name); edits <= most && (best == "" || edits < fewest) {
			best, fewest = name, edits
		}
	}
	if best == "" {
		best = completed(written, known)
	}
	return best
}

// completed returns the only known name that begins with what was written, or "".
func completed(written string, known []string) string {
	whole := ""
	if utf8.RuneCountInString(written) < leastBeginning {
		return ""
	}
	for _, name := range known {
		if !strings.HasPrefix(name, written) {
			continue
		}
		if whole != "" && name != whole {
			return ""
		}
		whole = name
	}
	return whole
}

// Question returns "; did you mean NAME?" with the name that is near, in a form such as %q
// or --%s, and "" if none is.
func Question(form, written string, known []string) string {
	name := Name(written, known)
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean "+form+"?", name)
}
