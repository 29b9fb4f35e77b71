// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

// forest is a tree of selectors that counts what is looked at.
type forest struct {
	places  map[string][]object.Key
	lookups int // places asked for
	keys    int // keys returned
}

func (f *forest) plant(key object.Key, selector map[string]string) {
	if f.places == nil {
		f.places = map[string][]object.Key{}
	}
	for _, place := range places(key.Namespace, object.LabelsOf(selector)) {
		f.places[place] = append(f.places[place], key)
	}
}

func (f *forest) at(place string) iter.Seq2[object.Key, struct{}] {
	f.lookups++
	return func(yield func(object.Key, struct{}) bool) {
		for _, key := range f.places[place] {
			f.keys++
			if !yield(key, struct{}{}) {
				return
			}
		}
	}
}

func (f *forest) matching(namespace string, podLabels map[string]string) []object.Key {
	var found []object.Key
	matching(namespace, object.LabelsOf(podLabels), f.at, func(key object.Key) { found = append(found, key) })
	slices.SortFunc(found, func(a, b object.Key) int { return compareText(a.String(), b.String()) })
	return found
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestAPodFindsTheServicesWhoseSelectorsItMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "a.b/c", "d"}), rapid.SampledFrom([]string{"", "1", "2", "1.2"}))
		selectors := rapid.MapOf(rapid.StringMatching("[a-z]{1,2}"), pairs).Draw(t, "selectors")
		podLabels := pairs.Draw(t, "labels")
		var f forest
		var want []object.Key
		for _, name := range slices.Sorted(maps.Keys(selectors)) {
			key := object.Key{Namespace: "shop", Name: name}
			f.plant(key, selectors[name])
			f.plant(object.Key{Namespace: "other", Name: name}, selectors[name])
			if len(selectors[name]) > 0 && labels.SelectorFromSet(selectors[name]).Matches(labels.Set(podLabels)) {
				want = append(want, key)
			}
		}
		if have := f.matching("shop", podLabels); !slices.Equal(have, want) {
			t.Fatalf("labels %v: have %v, want %v", podLabels, have, want)
		}
	})
}

// The kinds of selectors that namespaces have: each Service with a label of its own,
// each with one beside labels that all have, before and after it.
var habits = map[string]func(i int) map[string]string{
	"one label": func(i int) map[string]string { return map[string]string{"app": fmt.Sprint("svc-", i)} },
	"a common prefix": func(i int) map[string]string {
		return map[string]string{"app": "shop", "component": fmt.Sprint("svc-", i)}
	},
	"a common suffix": func(i int) map[string]string {
		return map[string]string{"app": fmt.Sprint("svc-", i), "part-of": "shop"}
	},
	"common everywhere": func(i int) map[string]string {
		return map[string]string{"app": "shop", "name": fmt.Sprint("svc-", i), "tier": "web"}
	},
}

func TestAPodEventLooksAtNoMoreIfThereAreMoreServices(t *testing.T) {
	for name, selector := range habits {
		t.Run(name, func(t *testing.T) {
			looked := map[int]forest{}
			for _, services := range []int{10, 5000} {
				var f forest
				for i := range services {
					f.plant(object.Key{Namespace: "shop", Name: fmt.Sprint("svc-", i)}, selector(i))
				}
				podLabels := selector(7)
				podLabels["pod-template-hash"], podLabels["version"] = "5d4f8c7b9", "v1"
				if found := f.matching("shop", podLabels); len(found) != 1 || found[0].Name != "svc-7" {
					t.Fatalf("of %d Services %v select the Pod", services, found)
				}
				f.places = nil
				looked[services] = f
			}
			few, many := looked[10], looked[5000]
			t.Logf("places %d and %d, keys %d and %d", few.lookups, many.lookups, few.keys, many.keys)
			if few.lookups != many.lookups || few.keys != many.keys {
				t.Errorf("among 10 Services: %d places and %d keys; among 5,000: %d and %d", few.lookups, few.keys, many.lookups, many.keys)
			}
		})
	}
}

func TestTheRarestPairOfASelectorIsSearched(t *testing.T) {
	walked := 0
	seq := func(n int) iter.Seq2[int, int] {
		return func(yield func(int, int) bool) {
			for i := range n {
				walked++
				if !yield(n, i) {
					return
				}
			}
		}
	}
	var have int
	for n := range fewest([]iter.Seq2[int, int]{seq(100_000), seq(300), seq(50_000)}) {
		have = n
	}
	if have != 300 {
		t.Errorf("chose the one of %d", have)
	}
	if walked > 10_000 {
		t.Errorf("%d steps to find the shortest of 300", walked)
	}
}
