// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
	"github.com/setpoint-io/setpoint/browser/internal/stage"
	"github.com/setpoint-io/setpoint/page"
)

// views are the views of the shop, by their addresses.
func views() []string {
	return []string{"/", "/o/apps/deployments/shop/web", "/o/apps/deployments/shop/web?run=1", "/changes?namespace=shop", "/search?q=web", "/o/apps/deployments/shop/nobody"}
}

// shop serves the pages of the shop.
func shop(t *testing.T) (*stage.Stage, *httptest.Server) {
	t.Helper()
	s, err := stage.Shop()
	if err != nil {
		t.Fatal(err)
	}
	return s, serve(t, page.New(s, page.Options{}))
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // live updates do not end by themselves
	return server
}

// openAt opens a tab at an address of a server. When the test ends, the tab must have requested nothing from other servers,
// and its console must have no errors.
func openAt(t *testing.T, server *httptest.Server, path string) *chromium.Tab {
	t.Helper()
	tab := openTab(t)
	must(t, tab.Visit(server.URL+path))
	t.Cleanup(func() { isClean(t, tab, server) })
	return tab
}

func isClean(t *testing.T, tab *chromium.Tab, server *httptest.Server) {
	t.Helper()
	if foreign := tab.Foreign(server.URL); len(foreign) > 0 {
		t.Errorf("requests to other servers: %q", foreign)
	}
	if problems := tab.Problems(); len(problems) > 0 {
		t.Errorf("the console of the browser has %q", problems)
	}
}

// shows waits until the page is loaded and has a text. Styles may change the case of what a reader sees.
func shows(t *testing.T, tab *chromium.Tab, text string) {
	t.Helper()
	must(t, tab.Until("document.readyState === 'complete' && document.body.innerText.toLowerCase().includes("+quote(strings.ToLower(text))+")"))
}

// quote returns a text as JavaScript has it.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "\\'") + "'" }

// A person sees which loop is in trouble, opens the object, reads the sentence, opens a run, goes through time, and looks
// at what happened.
func TestAPersonReadsTheThreeViews(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openAt(t, server, "/")
	shows(t, tab, "1 loop needs attention")
	shows(t, tab, "exceeded quota: few")
	must(t, tab.Click("nav a[href='/changes']"))
	shows(t, tab, "rollout of shop/web")
	shows(t, tab, "probably by kubectl-set")
	must(t, tab.Click("details.change:has(strong) summary"))
	must(t, tab.Until("document.querySelector('details[open] .lines')"))
	must(t, tab.Visit(server.URL+"/changes?namespace=shop"))
	must(t, tab.Click("details[id^='edit-uid-web-kubectl'] summary"))
	must(t, tab.Click("details[open] a[href='/o/apps/Deployment/shop/web']"))
	shows(t, tab, "web-58c9d5b7f4 keeps 8 Pods, as 3 new Pods are not available")
	must(t, tab.Click(".chain a[href*='run=']"))
	shows(t, tab, "Run 1 of deployment-controller")
	must(t, tab.Back())
	must(t, tab.Until("!location.search.includes('run=')"))
}

// The scrubber goes from run to run, and each state has an address.
func TestThroughTime(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openAt(t, server, "/o/apps/deployments/shop/web")
	must(t, tab.Click("svg.timeline a[href*='at=']"))
	must(t, tab.Until("location.search.includes('at=') && document.querySelector('#at')"))
	before, err := tab.Address()
	must(t, err)
	must(t, tab.Click("#earlier, #later"))
	must(t, tab.Until("location.href !== "+quote(before)))
	must(t, tab.Back())
	must(t, tab.Until("location.href === "+quote(before)))
}

// Ctrl-K and "/" lead to the search, wherever the reader is. The results are links, also to what does not exist any more.
func TestSearching(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openAt(t, server, "/o/apps/deployments/shop/web")
	must(t, tab.PressControl("k"))
	must(t, tab.Until("document.activeElement.id === 'q'"))
	must(t, tab.Press("old7x"+chromium.Enter))
	shows(t, tab, "does not exist any more")
	must(t, tab.Press("/"))
	must(t, tab.Until("document.activeElement.id === 'q'"))
	must(t, tab.PressControl("k")) // selects what is there
	must(t, tab.Press("deploy/web"+chromium.Enter))
	must(t, tab.Until("location.search === '?q=deploy%2Fweb'"))
	must(t, tab.Click(".hits a[href='/o/apps/Deployment/shop/web']"))
	shows(t, tab, "Why it is so")
}

// Without JavaScript each view has its content.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openTab(t)
	must(t, tab.WithoutScripts())
	for path, want := range map[string]string{
		"/": "1 loop needs attention", "/o/apps/deployments/shop/web": "keeps 8 Pods", "/o/apps/deployments/shop/web?run=1": "web-6f7c4d9b8",
		"/changes?namespace=shop": "rollout of web", "/search?q=web": "shop/web",
	} {
		must(t, tab.Visit(server.URL+path))
		if text, err := tab.Text(); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s does not show %q, %v:\n%s", path, want, err, text)
		}
	}
	isClean(t, tab, server)
}

// The arrow keys go through time below the timeline: the view shows what was known at that time, the address says it, and the
// focus stays. The last step is now.
func TestTheArrowKeysGoThroughTime(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openAt(t, server, "/o/apps/deployments/shop/web")
	must(t, tab.Until("document.querySelector('#scrubber') && document.readyState === 'complete'"))
	_, err := chromium.Evaluate[int](tab, "document.getElementById('scrubber').focus(), 1")
	must(t, err)
	must(t, tab.Press(chromium.ArrowLeft+chromium.ArrowLeft+chromium.ArrowLeft))
	must(t, tab.Until("location.search.includes('at=') && document.querySelector('#at')"))
	shows(t, tab, "the run before")
	if id, err := chromium.Evaluate[string](tab, "document.activeElement.id"); err != nil || id != "scrubber" {
		t.Errorf("the focus is on %q, %v", id, err)
	}
	must(t, tab.Press(chromium.ArrowRight+chromium.ArrowRight+chromium.ArrowRight+chromium.ArrowRight+chromium.ArrowRight+chromium.ArrowRight))
	must(t, tab.Until("!location.search.includes('at=') && !document.querySelector('#at') && document.querySelector('#scrub output').textContent === 'now'"))
}

// Without JavaScript the button below the timeline goes to the time of the control.
func TestTheTimelineWithoutScripts(t *testing.T) {
	t.Parallel()
	_, server := shop(t)
	tab := openTab(t)
	must(t, tab.WithoutScripts())
	must(t, tab.Visit(server.URL+"/o/apps/deployments/shop/web"))
	must(t, tab.Click("#scrubber")) // its middle
	must(t, tab.Click("#scrub button"))
	shows(t, tab, "the run before")
}
