// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
)

// The bar of an object shows over time what the controllers said about it: first nothing that is known, then that all is well,
// then a wait, a failure, and that all is well again. A second controller that is content does not hide the trouble of the first.
func TestTheBarShowsTheStatesOfThePast(t *testing.T) {
	noon := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	run := func(minute int, controller string, change func(*runs.Run)) explain.Traced {
		r := runs.Run{Number: uint64(minute), Controller: controller, Key: "shop/web", Object: web, Began: noon.Add(time.Duration(minute) * time.Minute)}
		r.Last = r.Began
		if change != nil {
			change(&r)
		}
		return explain.Traced{Run: r}
	}
	facts := explain.Facts{Object: web, Since: noon.Add(10 * time.Minute), Runs: []explain.Traced{ // the newest first
		run(50, "deployment", nil),
		run(40, "deployment", func(r *runs.Run) { r.Error = "no answer" }),
		run(35, "other", nil),
		run(30, "deployment", func(r *runs.Run) { r.Reasons = []runs.Reason{{Code: "Waits", Text: "it waits"}} }),
		run(20, "deployment", nil),
	}}
	d := drawing{told: &told{facts: facts}, from: noon, to: noon.Add(time.Hour)}
	classes := func(state map[string]any, wrong bool) (all []string) {
		end := d.x(noon)
		for _, s := range d.bar(web, state, wrong) {
			if s.X != end {
				t.Errorf("a part begins at %d and the one before ends at %d", s.X, end)
			}
			end = s.X + s.Length
			all = append(all, strings.TrimSpace(strings.TrimPrefix(s.Class, "bar")))
		}
		return all
	}
	if got, want := classes(map[string]any{}, false), []string{"unknown", "", "waits", "fails", ""}; !slices.Equal(got, want) {
		t.Errorf("the parts are %q, want %q", got, want)
	}
	if got, want := classes(map[string]any{}, true), []string{"unknown", "", "waits", "fails", "wrong"}; !slices.Equal(got, want) {
		t.Errorf("the parts of an object in trouble are %q, want %q", got, want)
	}
	if got, want := classes(nil, true), []string{"unknown", "", "waits", "fails"}; !slices.Equal(got, want) {
		t.Errorf("the parts of an object that does not exist any more are %q, want %q, up to its last run", got, want)
	}
}

// The scrubber reaches every time of the timeline, and its last step is now.
func TestTheScrubberEndsAtNow(t *testing.T) {
	noon := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	for _, length := range []time.Duration{time.Minute, 7*time.Minute + 123*time.Millisecond, 24 * time.Hour} {
		d := drawing{told: &told{}, from: noon, to: noon.Add(length)}
		s := d.scrubber()
		if s.Value != s.Max || s.Max < d.to.UnixMilli() || s.Max-s.Step >= d.to.UnixMilli() || (s.Max-s.Min)%s.Step != 0 {
			t.Errorf("over %s the scrubber is %+v", length, s)
		}
		d.chosen.at = noon.Add(length / 2)
		if s := d.scrubber(); s.Value != d.chosen.at.UnixMilli() || s.Text == "now" {
			t.Errorf("in the middle of %s the scrubber is %+v", length, s)
		}
	}
}
