// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/runs"
)

func TestTheSizeOfTheRecordOfRuns(t *testing.T) {
	var r recordFlag
	for text, want := range map[string]int{"0": 0, "16Mi": runs.DefaultBytes, "256Ki": runs.LeastBytes, "1G": 1_000_000_000} {
		if err := r.Set(text); err != nil || r.bytes != want {
			t.Errorf("%s: %d bytes, %v; want %d", text, r.bytes, err, want)
		}
	}
	for text, want := range map[string]string{
		"much": "want a size, such as 16Mi, or 0: ", "-1": "want 0, or 256Ki to 2047Mi", "255Ki": "want 0, or 256Ki to 2047Mi", "2Gi": "want 0, or 256Ki to 2047Mi",
	} {
		if err := r.Set(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want an error that begins with %q", text, err, want)
		}
	}
}
