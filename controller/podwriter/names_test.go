// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// web is the owner of most tests.
var web = object.Key{Namespace: "shop", Name: "web"}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func nothingUsed(string) bool { return false }

// take returns the names that an owner's next Pods get.
func take(n *names, uid types.UID, count int, prefix string, at time.Time, used func(string) bool) []string {
	owner := Owner{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, UID: uid}}}
	wanted := make([]*corev1.Pod, count)
	for i := range wanted {
		wanted[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	}
	var taken []string
	for _, pod := range n.give(owner, wanted, alike, at, used) {
		taken = append(taken, pod.Name)
	}
	return taken
}

func TestFreshNamesAreAllDifferentAndNotInUse(t *testing.T) {
	var n names
	used := map[string]bool{}
	for range 10 {
		for _, name := range take(&n, "uid", 500, "web-", noon, func(name string) bool { return used[name] }) {
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
	n.keep(web, "uid", "web-bbbbb", "", time.Time{})
	n.keep(web, "uid", "web-aaaaa", "", time.Time{})
	for range 2 { // for as long as nothing becomes of it
		if got := take(&n, "uid", 1, "web-", noon, nothingUsed); !slices.Equal(got, []string{"web-aaaaa"}) {
			t.Errorf("take 1 = %v, want web-a", got)
		}
	}
	got := take(&n, "uid", 3, "web-", noon, nothingUsed)
	if len(got) != 3 || got[0] != "web-aaaaa" || got[1] != "web-bbbbb" {
		t.Errorf("take 3 = %v, want web-a, web-b and another one", got)
	}
	n.made(web, "web-aaaaa")
	if got := take(&n, "uid", 1, "web-", noon.Add(1), nothingUsed); !slices.Equal(got, []string{"web-bbbbb"}) {
		t.Errorf("after web-a was made, take 1 = %v, want web-b", got)
	}
	take(&n, "uid", 1, "web-", noon.Add(1), func(name string) bool { return name == "web-bbbbb" })
	if len(n.open) != 0 {
		t.Errorf("%v is remembered, though both names are settled", n.open)
	}
}

func TestANameStaysOpenForAsLongAsALostRequestMayBeCarriedOut(t *testing.T) {
	var n names
	n.keep(web, "uid", "web-aaaaa", "", noon.Add(dueTime))
	n.keep(web, "uid", "web-aaaaa", "", time.Time{}) // refused when it was sent again
	n.made(web, "web-aaaaa")                         // and then it went well
	inUse := func(name string) bool { return name == "web-aaaaa" }
	if got := take(&n, "uid", 1, "web-", noon, inUse); got[0] == "web-aaaaa" {
		t.Errorf("a name in use was handed out")
	}
	// The Pod went: the next one takes the name, so that the lost request finds it
	// taken.
	if got := take(&n, "uid", 1, "web-", noon.Add(dueTime), nothingUsed); got[0] != "web-aaaaa" {
		t.Errorf("take = %v while the request may be carried out, want web-a", got)
	}
	if got := take(&n, "uid", 1, "web-", noon.Add(dueTime+1), nothingUsed); got[0] == "web-aaaaa" {
		t.Errorf("take = %v when the request is overdue, want a fresh name", got)
	}
}

func TestNamesAreThoseOfOneOwner(t *testing.T) {
	var n names
	n.keep(web, "uid", "web-aaaaa", "", time.Time{})
	if got := take(&n, "another-uid", 1, "web-", noon, nothingUsed); got[0] == "web-aaaaa" {
		t.Errorf("another ReplicaSet of that name got %v", got)
	}
	n.keep(web, "another-uid", "web-bbbbb", "", time.Time{})
	if got := take(&n, "another-uid", 2, "web-", noon, nothingUsed); got[0] != "web-bbbbb" || got[1] == "web-aaaaa" {
		t.Errorf("take = %v, want web-bbbbb and a fresh name", got)
	}
	n.forget(web)
	if len(n.open) != 0 {
		t.Errorf("%v is remembered of what is gone", n.open)
	}
}

// Each index of an indexed Job has a generateName of its own.
func TestANameIsUsedAgainForTheSameGenerateName(t *testing.T) {
	var n names
	n.keep(web, "uid", "web-1-aaaaa", "", time.Time{})
	if got := take(&n, "uid", 1, "web-2-", noon, nothingUsed); got[0] == "web-1-aaaaa" || !strings.HasPrefix(got[0], "web-2-") {
		t.Errorf("index 2 got %v", got)
	}
	if got := take(&n, "uid", 1, "web-", noon, nothingUsed); got[0] == "web-1-aaaaa" {
		t.Errorf("a Pod without index got %v", got)
	}
	if got := take(&n, "uid", 1, "web-1-", noon, nothingUsed); got[0] != "web-1-aaaaa" {
		t.Errorf("index 1 got %v, want the name of the create that failed", got)
	}
	long := strings.Repeat("x", 100)
	name := drawName(long)
	n.keep(web, "uid", name, "", time.Time{})
	if got := take(&n, "uid", 1, long, noon, nothingUsed); got[0] != name {
		t.Errorf("a Pod with a long generateName got %v, want %s", got, name)
	}
}
