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
	off := registry.Kind{Resource: object.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget"}, Controller: "widget-controller", Because: "the feature gate Widgets is off"}
	text := describeMissing(append(registry.WithoutController(nil, nil), off))
	for line := range strings.Lines(text) {
		if len(strings.TrimRight(line, "\n")) > lineWidth {
			t.Errorf("the line is longer than a terminal is wide: %s", line)
		}
	}
	byGate, leftOut, both := strings.Cut(text, "\nThe flag --controllers leaves out the controllers of\n")
	if want := "\nNo controller acts on these kinds, because the feature gate Widgets is off\n  Widgets\n"; !both || byGate != want {
		t.Fatalf("want a paragraph for each reason:\n%s", text)
	}
	if !strings.Contains(leftOut, " Deployments,") {
		t.Errorf("want Deployments among those that are left out:\n%s", text)
	}
	if got := describeMissing(nil); got != "" {
		t.Errorf("no controller is missing: %q", got)
	}
}

func TestTheDocumentsShowTheKindsThatAreLeftOut(t *testing.T) {
	run := slices.DeleteFunc(registry.Known(), func(d *controllers.Descriptor) bool { return d.Name == "disruption-controller" })
	want := strings.TrimSpace(describeMissing(registry.WithoutController(run, run)))
	for _, b := range documenttest.Blocks(t) {
		if strings.TrimSpace(b.Text) != want {
			t.Errorf("%s shows\n%s\nwant\n%s", b, b.Text, want)
		}
	}
}
