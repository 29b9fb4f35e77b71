// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// The document has a piece of the body of a function, without its indentation.
func TestTheCodeOfTheDocumentIsThatOfAnExample(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	inner := strings.ReplaceAll(string(examples), "\n\t\t", "\n")
	for _, b := range documenttest.Blocks(t) {
		if !strings.Contains(inner, "\n"+b.Text) {
			t.Errorf("%s has code that is in no example:\n%s", b, b.Text)
		}
	}
}
