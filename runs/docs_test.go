// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/runs"
)

// The document has the numbers of the format, and the outcomes in their order.
func TestTheDocumentHasTheNumbersOfTheFormat(t *testing.T) {
	text, err := os.ReadFile("../docs/record-format.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	want := []string{"every two seconds", "`setpoint runs 1` and a line break"}
	for name, number := range runs.Items() {
		want = append(want, fmt.Sprintf("| %s | %d |", name, number))
	}
	var outcomes []string
	for i, outcome := range runs.Outcomes() {
		outcomes = append(outcomes, fmt.Sprintf("%d `%s`", i, outcome))
	}
	want = append(want, strings.Join(outcomes, ", "))
	for _, want := range want {
		if !strings.Contains(strings.ToLower(page), strings.ToLower(want)) {
			t.Errorf("docs/record-format.md lacks %q", want)
		}
	}
}
