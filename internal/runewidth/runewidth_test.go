// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runewidth

import "testing"

func TestCharactersTakeTheirColumns(t *testing.T) {
	for r, want := range map[rune]int{'a': 1, 'ß': 1, '→': 1, '…': 1, '\u0301': 0, '\u200d': 0, '日': 2, 'ｗ': 2, '😀': 2} {
		if got := Of(r); got != want {
			t.Errorf("Of(%q) = %d, want %d", r, got, want)
		}
	}
}
