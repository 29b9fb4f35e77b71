// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"strings"
	"testing"
)

// Whatever the child writes, it is read to its end, or the child would block.
func FuzzFollowReadsEverything(f *testing.F) {
	f.Add(`{"state":"ready","component":"etcd","elapsed":"0.2s"}` + "\n")
	f.Add(`{"state":"failed","error":"x"}`)
	f.Add("{\n\x00\n" + strings.Repeat("a", 100))
	f.Fuzz(func(t *testing.T, text string) {
		r := strings.NewReader(text)
		_ = follow(r, func(Progress) {}, func(Endpoints) {})
		if r.Len() != 0 {
			t.Errorf("%d bytes were not read", r.Len())
		}
	})
}

func TestFollowReadsPastALineThatIsTooLong(t *testing.T) {
	r := strings.NewReader(strings.Repeat("a", 3*maxLine) + "\n" + `{"state":"ready"}` + "\n")
	err := follow(r, func(Progress) {}, func(Endpoints) {})
	if err == nil || r.Len() != 0 {
		t.Errorf("%d bytes were not read, error %v", r.Len(), err)
	}
}
