// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shortlist_test

import (
	"testing"

	"github.com/setpoint-io/setpoint/internal/shortlist"
)

func TestManyNamesAreShortened(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b", "c"}, "a, b, c"},
		{[]string{"a", "b", "c", "d"}, "a, b, c and 1 more"},
		{[]string{"e", "d", "c", "b", "a"}, "e, d, c and 2 more"},
	} {
		if got := shortlist.Join(test.names, 3); got != test.want {
			t.Errorf("Join(%q, 3) returns %q, want %q", test.names, got, test.want)
		}
	}
}
