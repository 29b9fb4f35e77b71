// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
)

// The checks run in the page, see the file.
//
//go:embed testdata/access.js
var accessChecks string

// Each view can be read by users of screen readers and by those who see little: contrast AA in both schemes, names of
// controls, one first heading and no level left out, marks with words.
func TestEveryoneCanRead(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openTab(t)
	for _, scheme := range []string{"light", "dark"} {
		must(t, tab.Scheme(scheme))
		for _, path := range views() {
			must(t, tab.Visit(server.URL+path))
			found, err := chromium.Evaluate[[]string](tab, accessChecks)
			must(t, err)
			if len(found) > 0 {
				t.Errorf("%s in %s:\n%s", path, scheme, strings.Join(found, "\n"))
			}
		}
	}
}

// The checks find mistakes: each is made on purpose.
func TestTheChecksOfAccessFindMistakes(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openTab(t)
	for mistake, want := range map[string]string{
		"document.querySelector('.quiet').style.color = '#aab'":                                  "contrast",
		"document.querySelector('label[for=q]').remove()":                                        "has no name",
		"document.querySelector('h1').remove()":                                                  "first heading",
		"document.querySelector('h2').outerHTML = '<h4>deep</h4>'":                               "leaves out",
		"document.documentElement.removeAttribute('lang')":                                       "language",
		"document.querySelector('main').insertAdjacentHTML('beforeend', '<svg role=img></svg>')": "picture",
	} {
		must(t, tab.Visit(server.URL+"/o/apps/deployments/shop/web"))
		// In one step: a live update would mend the page.
		found, err := chromium.Evaluate[[]string](tab, "{"+mistake+"}\n"+accessChecks)
		must(t, err)
		if !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("after %s the checks find %q, want %q", mistake, found, want)
		}
	}
}

// With the keyboard alone a reader reaches every control of each view, sees where the focus is, and leaves the page again.
func TestTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openTab(t)
	for _, path := range views() {
		must(t, tab.Visit(server.URL+path))
		controls, err := chromium.Evaluate[int](tab, "[...document.querySelectorAll('a[href], button, input, summary, [tabindex]')].filter(e => e.tabIndex >= 0 && e.checkVisibility()).length")
		must(t, err)
		reached, last := 0, -1
		for range controls + 5 {
			must(t, tab.Press(chromium.Tabulator))
			at, err := chromium.Evaluate[focus](tab, focused)
			must(t, err)
			if at.Body {
				break
			}
			reached++
			if !at.Seen {
				t.Errorf("%s: the focus on %s is not seen", path, at.What)
			}
			if at.Order < last {
				t.Errorf("%s: the focus goes back to %s", path, at.What)
			}
			last = at.Order
		}
		if reached < controls-2 || reached > controls {
			t.Errorf("%s: the key Tab reaches %d of %d controls", path, reached, controls)
		}
	}
}

// focus is where the focus is.
type focus struct {
	Body  bool   `json:"body"`
	What  string `json:"what"`
	Seen  bool   `json:"seen"`  // an outline marks it, inside of the window
	Order int    `json:"order"` // in the document
}

const focused = `(() => {
  const e = document.activeElement;
  if (e === document.body || e === document.documentElement) return {body: true, what: "", seen: true, order: 0};
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.bottom > 0 && box.top < innerHeight && box.right > 0;
  return {body: false, what: e.outerHTML.slice(0, 120), seen, order: [...document.querySelectorAll("*")].indexOf(e)};
})()`
