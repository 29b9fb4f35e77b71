// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shortlist

import (
	"fmt"
	"strings"
)

// Join returns the first names, at most as many as most says, with commas between them, and the
// number of the other names: "a, b, c and 2 more". The order of the names is the caller's.
// It changes nothing, so it is safe for concurrent use. most is 1 or more.
func Join(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
