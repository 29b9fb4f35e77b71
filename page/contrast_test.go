// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

// grounds are the colors that each color stands on, and the contrast that it needs: 4.5 for text, and 3 for edges of controls
// and shapes that carry a meaning.
// Source: WCAG 2.2, success criteria 1.4.3 and 1.4.11, level AA.
var grounds = []struct {
	color string
	on    []string
	least float64
}{
	{"text", []string{"ground", "raised", "trouble-ground"}, 4.5},
	{"quiet", []string{"ground", "raised"}, 4.5},
	{"accent", []string{"ground", "raised"}, 4.5},
	{"trouble", []string{"ground", "raised", "trouble-ground"}, 4.5},
	{"well", []string{"ground", "raised"}, 4.5},
	{"edge", []string{"ground"}, 3},
	{"accent", []string{"bar-low"}, 3}, // a run in the timeline
	{"trouble", []string{"bar-low"}, 3},
}

// schemes returns the variables of the style sheet for light and dark. Those that dark does not change are those of light.
func schemes(t *testing.T) map[string]map[string]string {
	t.Helper()
	sheet, err := files.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	_, dark, found := strings.Cut(string(sheet), "@media (prefers-color-scheme: dark) {")
	block := regexp.MustCompile(`(?s):root \{(.*?)\}`)
	light, inDark := block.FindStringSubmatch(string(sheet)), block.FindStringSubmatch(dark)
	if !found || light == nil || inDark == nil {
		t.Fatal("the style sheet has no variables for both schemes")
	}
	all := map[string]map[string]string{"light": {}, "dark": {}}
	for _, v := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(light[1], -1) {
		all["light"][v[1]], all["dark"][v[1]] = v[2], v[2]
	}
	for _, v := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(inDark[1], -1) {
		all["dark"][v[1]] = v[2]
	}
	return all
}

// contrast returns the contrast ratio of two colors.
// Source: WCAG 2.2, definitions of "relative luminance" and "contrast ratio".
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(color string) float64 {
		var rgb [3]int
		if _, err := fmt.Sscanf(color, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
			t.Fatalf("%q is no color: %v", color, err)
		}
		part := func(c int) float64 {
			if v := float64(c) / 255; v > 0.04045 {
				return math.Pow((v+0.055)/1.055, 2.4)
			}
			return float64(c) / 255 / 12.92
		}
		return 0.2126*part(rgb[0]) + 0.7152*part(rgb[1]) + 0.0722*part(rgb[2])
	}
	one, other := luminance(a), luminance(b)
	return (max(one, other) + 0.05) / (min(one, other) + 0.05)
}

func TestColorsCanBeToldApart(t *testing.T) {
	if c := contrast(t, "#767676", "#ffffff"); math.Abs(c-4.54) > 0.01 {
		t.Fatalf("the contrast of #767676 on white is %.3f, want 4.54", c)
	}
	for scheme, colors := range schemes(t) {
		for _, g := range grounds {
			for _, on := range g.on {
				if c := contrast(t, colors[g.color], colors[on]); c < g.least {
					t.Errorf("%s: %s %s on %s %s has a contrast of %.2f, want %.1f", scheme, g.color, colors[g.color], on, colors[on], c, g.least)
				}
			}
		}
	}
}

// The page moves nothing if the browser prefers reduced motion: each transition and animation stands in a block for the other browsers. Forced
// colors have a block of their own, as shapes of pictures keep their colors otherwise.
func TestTheStyleSheetObeysTheUser(t *testing.T) {
	sheet, err := files.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	outside := regexp.MustCompile(`(?s)@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}`).ReplaceAllString(string(sheet), "")
	if moves := regexp.MustCompile(`(transition|animation|scroll-behavior)[a-z-]*:`).FindString(outside); moves != "" {
		t.Errorf("%s moves something for users who asked for reduced motion", moves)
	}
	_, forced, found := strings.Cut(string(sheet), "@media (forced-colors: active) {")
	for _, shape := range []string{".graph rect", ".timeline .bar", ".timeline .dot", ".spark polyline", "aria-current"} {
		if !found || !strings.Contains(forced, shape) {
			t.Errorf("forced colors do not reach %s", shape)
		}
	}
}
