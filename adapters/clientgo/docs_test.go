// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"os"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// What docs/client-go.md shows is in the example.
func TestTheDocumentShowsTheExample(t *testing.T) {
	text, err := os.ReadFile("../examples/samplecontroller/informers.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := documenttest.Blocks(t)
	for _, block := range blocks {
		for line := range strings.Lines(block.Text) {
			if !strings.Contains(string(text), "\t"+strings.TrimSpace(line)+"\n") {
				t.Errorf("%s: the example has no line %q", block, strings.TrimSpace(line))
			}
		}
	}
	if len(blocks) != 2 { // of docs/client-go.md
		t.Errorf("have %d blocks", len(blocks))
	}
}
