// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	headings   = regexp.MustCompile(`<h([1-6])[ >]`)
	ids        = regexp.MustCompile(` id="([^"]*)"`)
	references = regexp.MustCompile(` (aria-labelledby|for)="([^"]*)"`)
	landmarks  = regexp.MustCompile(`<(section|nav)( [^>]*)?>`)
	inputs     = regexp.MustCompile(`<input [^>]*>`)
	pictures   = regexp.MustCompile(`<svg [^>]*>`)
)

// mistakes returns what keeps users of screen readers from finding their way in a page.
func mistakes(html string) (found []string) {
	last := 0
	firsts := 0
	for _, h := range headings.FindAllStringSubmatch(html, -1) {
		level := int(h[1][0] - '0')
		if level == 1 {
			firsts++
		}
		if level > last+1 {
			found = append(found, fmt.Sprintf("a heading of level %d follows one of level %d", level, last))
		}
		last = level
	}
	if firsts != 1 {
		found = append(found, fmt.Sprintf("there are %d first headings", firsts))
	}
	if n := strings.Count(html, "<main "); n != 1 {
		found = append(found, fmt.Sprintf("there are %d main parts", n))
	}
	var known []string
	for _, id := range ids.FindAllStringSubmatch(html, -1) {
		if slices.Contains(known, id[1]) {
			found = append(found, "two elements have the id "+id[1])
		}
		known = append(known, id[1])
	}
	for _, r := range references.FindAllStringSubmatch(html, -1) {
		if !slices.Contains(known, r[2]) {
			found = append(found, r[1]+" names "+r[2]+", which is not there")
		}
	}
	for _, l := range landmarks.FindAllString(html, -1) {
		if !strings.Contains(l, "aria-label") && !strings.Contains(l, `data-part="problem"`) {
			found = append(found, l+" has no name")
		}
	}
	for _, i := range inputs.FindAllString(html, -1) {
		id := ids.FindStringSubmatch(i)
		if !strings.Contains(i, `type="hidden"`) && (id == nil || !regexp.MustCompile(`<label [^>]*\bfor="`+id[1]+`"`).MatchString(html)) {
			found = append(found, i+" has no label")
		}
	}
	for _, p := range pictures.FindAllString(html, -1) {
		if !strings.Contains(p, "aria-hidden") && !strings.Contains(p, "aria-label") {
			found = append(found, p+" is neither named nor hidden")
		}
	}
	if !strings.Contains(html, `<html lang="en">`) || !strings.Contains(html, `<a class="skip" href="#main">`) {
		found = append(found, "the language or the link to the content is missing")
	}
	return found
}

// Each view has headings, landmarks, labels and names that lead users of screen readers.
func TestEachViewHasAStructure(t *testing.T) {
	s := rollout(t)
	s.overview = inTrouble()
	p := newPage(s)
	for _, path := range []string{
		"/", "/o/apps/deployments/shop/web", "/o/apps/deployments/shop/web?run=1&below=5", "/o/apps/deployments/shop/web?run=1&at=2026-01-02T15:04:05Z",
		"/o/apps/deployments/shop/gone", "/changes?namespace=shop", "/search?q=web", "/search",
	} {
		if found := mistakes(get(t, p, path).Body.String()); len(found) > 0 {
			t.Errorf("%s:\n%s", path, strings.Join(found, "\n"))
		}
	}
	html := get(t, p, "/o/apps/deployments/shop/web").Body.String()
	for _, mistake := range []struct{ old, replaced, want string }{
		{"<h1 ", "<h3 ", "first heading"}, {`<label for="scrubber">`, "<label>", "has no label"}, {`<h2 id="why">`, "<h2>", "why, which is not there"},
		{`role="group" aria-label="Runs`, `role="group" data-x="Runs`, "neither named nor hidden"}, {`<nav aria-label="Views">`, "<nav>", "<nav> has no name"},
		{`<html lang="en">`, "<html>", "language"}, {`id="below"`, `id="why"`, "two elements"},
	} {
		wrong := strings.Replace(html, mistake.old, mistake.replaced, 1)
		if found := strings.Join(mistakes(wrong), "\n"); wrong == html || !strings.Contains(found, mistake.want) {
			t.Errorf("with %s in place of %s, what is found is %q, want %q", mistake.replaced, mistake.old, found, mistake.want)
		}
	}
}
