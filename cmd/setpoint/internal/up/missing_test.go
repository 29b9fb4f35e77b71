// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/documenttest"
	"github.com/setpoint-io/setpoint/object"
)

func TestMissingControllersAreAShortParagraphForEachReason(t *testing.T) {
	absent := registry.Kind{Resource: object.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget"}, Controller: "widget-controller"}
	text := describeMissing(append(registry.WithoutController(nil), absent))
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

// The list becomes shorter with each controller that is built in. With the last one the paragraph
// goes from the documents, as from what "setpoint up" prints.
func TestTheDocumentsShowTheKindsWithoutAController(t *testing.T) {
	want := describeMissing(registry.WithoutController(registry.Known()))
	for _, b := range documenttest.Blocks(t) {
		if !strings.Contains("\n"+b.Text, want) || want == "" && strings.Contains(b.Text, "no controllers yet") {
			t.Errorf("%s does not show %q", b, want)
		}
	}
}

func TestTheDocumentsShowTheKindsThatAreLeftOut(t *testing.T) {
	run := slices.DeleteFunc(registry.Known(), func(d *controllers.Descriptor) bool { return d.Name == "disruption-controller" })
	leftOut := slices.DeleteFunc(registry.WithoutController(run), func(k registry.Kind) bool { return !k.BuiltIn })
	for _, b := range documenttest.Blocks(t) {
		if want := strings.TrimSpace(describeMissing(leftOut)); strings.TrimSpace(b.Text) != want {
			t.Errorf("%s shows\n%s\nwant\n%s", b, b.Text, want)
		}
	}
}

// Once Setpoint has all controllers, --controllers alone leaves kinds without one.
func TestWithAllControllersBuiltInOnlyTheFlagIsNamed(t *testing.T) {
	leftOut := slices.DeleteFunc(registry.WithoutController(nil), func(k registry.Kind) bool { return !k.BuiltIn })
	text := describeMissing(leftOut)
	if !strings.HasPrefix(text, "\nThe flag --controllers leaves out the controllers of\n  ") || strings.Count(text, "\n\n") > 0 {
		t.Errorf("want one paragraph:\n%s", text)
	}
	for _, k := range leftOut {
		if got := why(k); got != "the flag --controllers leaves it out" {
			t.Errorf("%s: %s", k.Controller, got)
		}
	}
}
