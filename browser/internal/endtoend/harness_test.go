// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
)

// The harness sees what the other tests rely on: what a page requests from others, what its policy blocks, errors of its
// scripts, and the color scheme. Otherwise a test that finds none of them would prove nothing.
func TestTheHarnessSees(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, "document.title = 'scripted'; throw new Error('on purpose')")
		default:
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; img-src 'self' "+other.URL)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, "<!doctype html><title>plain</title><button onclick=\"1\">press</button><img alt='' src='%s/picture'><style>body{color:red}</style><script src=/script.js></script>", other.URL)
		}
	}))
	defer page.Close()
	tab := openTab(t)
	must(t, tab.Scheme("dark"))
	must(t, tab.Visit(page.URL))
	must(t, tab.Until("document.title === 'scripted'"))
	must(t, tab.Click("button"))
	if dark, err := chromium.Evaluate[bool](tab, "matchMedia('(prefers-color-scheme: dark)').matches"); err != nil || !dark {
		t.Error("the page does not see the dark scheme:", err)
	}
	if foreign := tab.Foreign(page.URL); !slices.Equal(foreign, []string{other.URL + "/picture"}) {
		t.Errorf("requests to other hosts: %q, want the picture", foreign)
	}
	for _, want := range []string{"on purpose", "style-src", "script-src"} {
		await(t, "a problem that names "+want, func() bool { return strings.Contains(strings.Join(tab.Problems(), "\n"), want) })
	}
	plain := openTab(t)
	must(t, plain.WithoutScripts())
	must(t, plain.Visit(page.URL))
	if title, err := chromium.Evaluate[string](plain, "document.title"); err != nil || title != "plain" {
		t.Errorf("without scripts the title is %q, %v", title, err)
	}
}
