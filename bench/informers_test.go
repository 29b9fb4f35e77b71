// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestInformersMeasuresBothSides(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"informers", "--informers", "5", "--objects", "2", "--turns", "1"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"informers-memory-of-each", "informers-goroutines-of-each", "informers-seconds-to-sync", "informers-goroutines-left"} {
		_, line, found := strings.Cut(out.String(), "\n"+name+" ")
		line, _, _ = strings.Cut(line, "\n")
		if !found || strings.Contains(line, "setpoint=-") || strings.Contains(line, "peer=none") {
			t.Errorf("%s: %q is no measure of both sides, in\n%s", name, line, out.String())
		}
	}
}

func TestInformersSaysWhatIsWrongWithItsArguments(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"informers", "--informers", "0"}, &out); err == nil || !strings.Contains(err.Error(), "--informers 0") {
		t.Errorf("no informers: %v", err)
	}
}
