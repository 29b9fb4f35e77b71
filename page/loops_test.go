// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/workqueue"
)

var update = flag.Bool("update", false, "write the golden files")

// allWell is an overview in which nothing is wrong.
func allWell() manager.Overview {
	var took workqueue.Histogram
	took.Counts[5], took.Counts[7] = 98, 2
	return manager.Overview{AsOf: noon, Instance: "node-2", State: "working", Loops: []manager.LoopView{
		{Name: "endpointslice-controller", Kind: "Service", Runs: 100, Took: took, Held: 1,
			Waiting:   []workqueue.Level{{Priority: workqueue.Normal, Keys: 2, Oldest: noon.Add(-2 * time.Millisecond)}},
			Informers: []manager.InformerView{{Kind: "services", Synced: true, Heard: noon.Add(-3 * time.Second)}}},
		{Name: "deployment-controller", Group: "apps", Kind: "Deployment"},
	}}
}

// inTrouble is an overview in which two loops need attention.
func inTrouble() manager.Overview {
	o := allWell()
	next := noon.Add(12 * time.Second)
	failed := func(key string) manager.FailedKey {
		return manager.FailedKey{Key: key, Error: `quota "few" is used up`, At: noon.Add(-time.Second), Runs: 7, Next: &next}
	}
	o.Loops = append(o.Loops,
		manager.LoopView{Name: "garbage-collector-controller", Informers: []manager.InformerView{
			{Kind: "widgets.example.com", Synced: true, Trouble: "the webhook is down"}}},
		manager.LoopView{Name: "replicaset-controller", Group: "apps", Kind: "ReplicaSet", Failing: 4, GivenUp: 1,
			Failed: []manager.FailedKey{failed("shop/a"), failed("shop/b"), failed("shop/c"), failed("shop/d"),
				{Key: "shop/e", Error: "the selector is empty", At: noon, Runs: 1, GivenUp: true}},
			Waiting: []workqueue.Level{
				{Priority: workqueue.High, Keys: 1, Oldest: noon.Add(-time.Second)},
				{Priority: workqueue.Low, Keys: 40, Oldest: noon.Add(-4 * time.Minute)},
			}},
	)
	return o
}

// ofOperator is an overview of an operator with a loop of a name that the other manager has, too.
func ofOperator() manager.Overview {
	o := inTrouble()
	return manager.Overview{AsOf: noon.Add(time.Hour), Instance: "operator-1", State: "working", NotReady: []string{"informers: shops are not listed"},
		Loops: []manager.LoopView{{Name: "shop-operator", Group: "example.com", Kind: "Shop", Failing: 1, Failed: o.Loops[3].Failed[:1]}, {Name: "deployment-controller"}}}
}

// standingBy is an overview of a manager that does not lead.
func standingBy() manager.Overview {
	return manager.Overview{AsOf: noon, Instance: "node-1", State: "standing by", Holder: "node-2_x", Loops: []manager.LoopView{{Name: "deployment-controller"}}}
}

func TestTheLoopsInEachState(t *testing.T) {
	for name, state := range map[string]struct {
		overview manager.Overview
		err      error
		others   []page.State
		unread   []page.Unread
	}{
		"loops-managers": {overview: allWell(), others: []page.State{{Overview: ofOperator(), URL: "https://10.0.0.7:8443"}},
			unread: []page.Unread{{URL: "https://10.0.0.8:8443", Text: "the manager at https://10.0.0.8:8443 does not answer: connection refused"}}},
		"loops-standby": {overview: standingBy(), others: []page.State{{Overview: inTrouble(), URL: "https://10.0.0.7:10257"}}},
		"loops-standby-alone": {overview: standingBy(), unread: []page.Unread{
			{URL: "https://10.0.0.7:10257", Text: "the manager at https://10.0.0.7:10257 requires authentication"}}},
		"loops-well":    {overview: allWell()},
		"loops-trouble": {overview: inTrouble()},
		"loops-unknown": {err: errors.New("the manager at https://10.0.0.5:10257 does not answer: connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t)
			s.overview, s.err, s.others, s.unread = state.overview, state.err, state.others, state.unread
			w := get(t, newPage(s), "/")
			if w.Code != http.StatusOK {
				t.Fatalf("the view is answered with %d:\n%s", w.Code, w.Body)
			}
			golden(t, name, mainOf(t, w.Body.String()))
		})
	}
}

var (
	times  = regexp.MustCompile(`\d\d:\d\d:\d\d\.\d+Z|\d\d:\d\d:\d\d`)
	dates  = regexp.MustCompile(`\d{4}-\d\d-\d\dT`)
	spaces = regexp.MustCompile(`\s+`)
	gaps   = regexp.MustCompile(`> <`)
)

// mainOf returns the main part of a page, an element a line, without times.
func mainOf(t *testing.T, html string) string {
	t.Helper()
	_, rest, found := strings.Cut(html, `<main id="main" tabindex="-1">`)
	body, _, closed := strings.Cut(rest, "</main>")
	if !found || !closed {
		t.Fatalf("the page has no main part:\n%s", html)
	}
	body = times.ReplaceAllString(dates.ReplaceAllString(spaces.ReplaceAllString(body, " "), "DATE"), "TIME")
	return strings.TrimSpace(gaps.ReplaceAllString(body, ">\n<")) + "\n"
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the view is not that of %s (go test -update writes it):\n%s", file, got)
	}
}
