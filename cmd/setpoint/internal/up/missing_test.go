// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/documenttest"
)

func TestMissingControllersAreAShortParagraphForEachReason(t *testing.T) {
	text := describeMissing(registry.WithoutController(nil))
	for line := range strings.Lines(text) {
		if len(strings.TrimRight(line, "\n")) > lineWidth {
			t.Errorf("the line is longer than a terminal is wide: %s", line)
		}
	}
	notYet, leftOut, both := strings.Cut(text, "The flag --controllers leaves out the controllers of\n")
	if !both || !strings.HasPrefix(notYet, "\nSetpoint has no controllers yet for\n") {
		t.Fatalf("want a paragraph for each reason:\n%s", text)
	}
	if !strings.Contains(leftOut, " Deployments,") || strings.Contains(notYet, "Deployments") {
		t.Errorf("want Deployments among those that are left out:\n%s", text)
	}
	if got := describeMissing(registry.WithoutController(registry.Known())); strings.Contains(got, "--controllers") {
		t.Errorf("nothing is left out:\n%s", got)
	}
	if got := describeMissing(nil); got != "" {
		t.Errorf("no controller is missing: %q", got)
	}
}

// The list becomes shorter with each controller that is built in.
func TestTheDocumentsShowTheKindsWithoutAController(t *testing.T) {
	want := describeMissing(registry.WithoutController(registry.Known()))
	for _, b := range documenttest.Blocks(t) {
		if !strings.Contains("\n"+b.Text, want) {
			t.Errorf("%s does not show%s", b, want)
		}
	}
}
