// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// web is the owner of most tests.
var web = object.Key{Namespace: "shop", Name: "web"}

func nothingUsed(string) bool { return false }

func TestFreshNamesAreAllDifferentAndNotInUse(t *testing.T) {
	var n names
	used := map[string]bool{}
	for range 10 {
		for _, name := range n.take(web, "uid", 500, "web-", noon, func(name string) bool { return used[name] }) {
			if used[name] {
				t.Fatalf("%s was handed out twice", name)
			}
			if !strings.HasPrefix(name, "web-") {
				t.Fatalf("%s does not begin with web-", name)
			}
			used[name] = true
		}
	}
}

func TestNamesAreCutToTheLengthOfALabel(t *testing.T) {
	if name := drawName(strings.Repeat("x", 253) + "-"); len(name) != 63 {
		t.Errorf("the name %q has %d characters, want 63", name, len(name))
	}
}

func TestTheNameOfAFailedCreateIsUsedAgain(t *testing.T) {
	var n names
	n.keep(web, "uid", "web-b", time.Time{})
	n.keep(web, "uid", "web-a", time.Time{})
	for range 2 { // for as long as nothing becomes of it
		if got := n.take(web, "uid", 1, "web-", noon, nothingUsed); !slices.Equal(got, []string{"web-a"}) {
			t.Errorf("take 1 = %v, want web-a", got)
		}
	}
	got := n.take(web, "uid", 3, "web-", noon, nothingUsed)
	if len(got) != 3 || got[0] != "web-a" || got[1] != "web-b" {
		t.Errorf("take 3 = %v, want web-a, web-b and another one", got)
	}
	n.made(web, "web-a")
	if got := n.take(web, "uid", 1, "web-", noon.Add(1), nothingUsed); !slices.Equal(got, []string{"web-b"}) {
		t.Errorf("after web-a was made, take 1 = %v, want web-b", got)
	}
	n.take(web, "uid", 1, "web-", noon.Add(1), func(name string) bool { return name == "web-b" })
	if len(n.open) != 0 {
		t.Errorf("%v is remembered, though both names are settled", n.open)
	}
}

func TestANameStaysOpenForAsLongAsALostRequestMayBeCarriedOut(t *testing.T) {
	var n names
	n.keep(web, "uid", "web-a", noon.Add(dueTime))
	n.keep(web, "uid", "web-a", time.Time{}) // refused when it was sent again
	n.made(web, "web-a")                     // and then it went well
	inUse := func(name string) bool { return name == "web-a" }
	if got := n.take(web, "uid", 1, "web-", noon, inUse); got[0] == "web-a" {
		t.Errorf("a name in use was handed out")
	}
	// The Pod went: the next one takes the name, so that the lost request finds it
	// taken.
	if got := n.take(web, "uid", 1, "web-", noon.Add(dueTime), nothingUsed); got[0] != "web-a" {
		t.Errorf("take = %v while the request may be carried out, want web-a", got)
	}
	if got := n.take(web, "uid", 1, "web-", noon.Add(dueTime+1), nothingUsed); got[0] == "web-a" {
		t.Errorf("take = %v when the request is overdue, want a fresh name", got)
	}
}

func TestNamesAreThoseOfOneOwner(t *testing.T) {
	var n names
	n.keep(web, "uid", "web-a", time.Time{})
	if got := n.take(web, "another-uid", 1, "web-", noon, nothingUsed); got[0] == "web-a" {
		t.Errorf("another ReplicaSet of that name got %v", got)
	}
	n.keep(web, "another-uid", "web-b", time.Time{})
	if got := n.take(web, "another-uid", 2, "web-", noon, nothingUsed); got[0] != "web-b" || got[1] == "web-a" {
		t.Errorf("take = %v, want web-b and a fresh name", got)
	}
	n.forget(web)
	if len(n.open) != 0 {
		t.Errorf("%v is remembered of what is gone", n.open)
	}
}
