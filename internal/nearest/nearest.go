// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nearest

// Name returns the first of the known names that are the fewest edits away from one that
// was written: letters inserted, left out or replaced, and neighbours swapped. Without
// known names it returns "".
func Name(written string, known []string) string {
	best, fewest := "", -1
	for _, name := range known {
		if edits := distance(written, name); fewest < 0 || edits < fewest {
			best, fewest = name, edits
		}
	}
	return best
}
