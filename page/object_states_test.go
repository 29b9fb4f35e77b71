// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// What differs from run to run in the view of an object: when runs began, how long ago that was, and places in the timeline,
// which depend on both.
var (
	identities = regexp.MustCompile(`run=(\d+)-[0-9a-z]+`)
	moments    = regexp.MustCompile(`at=DATETIME[^&"]*|at=\d{4}[^&"]*`)
	ages       = regexp.MustCompile(`\d+ (s|min|ms) ago|since \d+ (s|min)`)
	places     = regexp.MustCompile(`( (x|x1|x2|cx|width|value|min|max|step)="|d="M)[\d.]+`)
)

// stable returns the main part of a view of an object without that.
func stable(t *testing.T, html string) string {
	t.Helper()
	html = moments.ReplaceAllString(identities.ReplaceAllString(html, "run=$1-BEGAN"), "at=AT")
	return places.ReplaceAllString(ages.ReplaceAllString(mainOf(t, html), "AGE ago"), "${1}N")
}

// The view of an object in each of its states: one that waits, with a run open; one that is well; and one that does not exist
// any more.
func TestAnObjectInEachState(t *testing.T) {
	for name, path := range map[string]string{
		"object-waits": "/o/apps/deployments/shop/web?run=1",
		"object-well":  "/o/apps/replicasets/shop/web-1",
		"object-gone":  "/o/core/pods/shop/web-1-gone",
	} {
		t.Run(name, func(t *testing.T) {
			s := rollout(t)
			gone := runs.Object{Kind: "Pod", Namespace: "shop", Name: "web-1-gone", UID: "uid-gone"}
			runs.Add(s.record.Loop("replicaset-controller", "apps", "ReplicaSet"), object.Key{Namespace: "shop", Name: "web-1"}, &runs.Ended{
				Began: time.Now().Add(-4*time.Minute - 30*time.Second), Took: time.Millisecond, Outcome: runs.Done, Writes: []runs.Write{{Verb: "delete", Object: gone}}})
			w := get(t, newPage(s), path)
			if w.Code != http.StatusOK {
				t.Fatalf("the view is answered with %d:\n%s", w.Code, w.Body)
			}
			golden(t, name, stable(t, w.Body.String()))
		})
	}
}
