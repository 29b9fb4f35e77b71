// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"strings"
	"testing"
)

func TestTheBudgetOfDecodedObjects(t *testing.T) {
	var d decodedFlag
	for text, want := range map[string]int64{"0": 0, "4Mi": 4 << 20, "1G": 1_000_000_000, "8Gi": 8 << 30} {
		if err := d.Set(text); err != nil || d.bytes != want {
			t.Errorf("%s: %d bytes, %v; want %d", text, d.bytes, err, want)
		}
	}
	for _, text := range []string{"much", "-1", ""} {
		if err := d.Set(text); err == nil || !strings.HasPrefix(err.Error(), "want a size, such as 64Mi, or 0") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
