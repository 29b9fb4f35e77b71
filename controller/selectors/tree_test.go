// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

// forest is a tree of selectors that counts what is read.
type forest struct {
	places    map[string][]object.Key
	selectors map[object.Key]labels.Selector
	lookups   int // places asked for
	keys      int // keys returned
	compared  int // selectors compared
}

func (f *forest) plant(key object.Key, selector labels.Selector) {
	if f.places == nil {
		f.places, f.selectors = map[string][]object.Key{}, map[object.Key]labels.Selector{}
	}
	f.selectors[key] = selector
	for _, place := range places(key.Namespace, selector) {
		f.places[place] = append(f.places[place], key)
	}
}

func (f *forest) at(place string) iter.Seq2[object.Key, object.Key] {
	f.lookups++
	return func(yield func(object.Key, object.Key) bool) {
		for _, key := range f.places[place] {
			f.keys++
			if !yield(key, key) {
				return
			}
		}
	}
}

func (f *forest) has(place string) bool {
	f.lookups++
	return len(f.places[place]) > 0
}

func (f *forest) selecting(namespace string, set map[string]string) iter.Seq2[object.Key, object.Key] {
	return func(yield func(object.Key, object.Key) bool) {
		w := walk[object.Key]{has: f.has, at: f.at, yield: yield, match: func(key object.Key) bool {
			f.compared++
			return f.selectors[key].Matches(labels.Set(set))
		}}
		w.all(namespace, object.LabelsOf(set))
	}
}

func sorted[V any](seq iter.Seq2[object.Key, V]) []object.Key {
	var keys []object.Key
	for key := range seq {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b object.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

var (
	drawKey   = rapid.SampledFrom([]string{"a", "b", "c", "a.b/c", "d"})
	drawValue = rapid.SampledFrom([]string{"", "1", "2", "1.2", "3"})
	drawSet   = rapid.MapOf(drawKey, drawValue)
)

// drawSelector draws a selector with requirements of all kinds, also several for one key.
func drawSelector(t *rapid.T, name string) labels.Selector {
	if rapid.IntRange(0, 20).Draw(t, name+": nothing") == 0 {
		return labels.Nothing()
	}
	selector := labels.NewSelector()
	for range rapid.IntRange(0, 4).Draw(t, name+": requirements") {
		key := drawKey.Draw(t, name+": key")
		operator := rapid.SampledFrom([]selection.Operator{
			selection.Equals, selection.DoubleEquals, selection.In, selection.NotIn, selection.NotEquals,
			selection.Exists, selection.DoesNotExist, selection.GreaterThan, selection.LessThan,
		}).Draw(t, name+": operator")
		var values []string
		switch operator {
		case selection.Equals, selection.DoubleEquals, selection.NotEquals:
			values = []string{drawValue.Draw(t, name+": value")}
		case selection.GreaterThan, selection.LessThan:
			values = []string{"1"}
		case selection.In, selection.NotIn:
			values = rapid.SliceOfN(drawValue, 1, 5).Draw(t, name+": values")
		case selection.Exists, selection.DoesNotExist:
		}
		r, err := labels.NewRequirement(key, operator, values)
		if err != nil {
			t.Fatal(err)
		}
		selector = selector.Add(*r)
	}
	return selector
}

func TestLabelsFindExactlyTheSelectorsThatMatchThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet.Draw(t, "labels")
		var f forest
		var want []object.Key
		for i := range rapid.IntRange(0, 12).Draw(t, "selectors") {
			key := object.Key{Namespace: "shop", Name: fmt.Sprint("s-", 10+i)}
			selector := drawSelector(t, key.Name)
			f.plant(key, selector)
			f.plant(object.Key{Namespace: "other", Name: key.Name}, selector)
			if selector.Matches(labels.Set(set)) {
				want = append(want, key)
			}
		}
		if have := sorted(f.selecting("shop", set)); !slices.Equal(have, want) {
			t.Fatalf("labels %v: have %v, want %v", set, have, want)
		}
		few := 0
		for range f.selecting("shop", set) {
			if few++; few == 2 {
				break // a reader may stop at any of them
			}
		}
		if few != min(2, len(want)) {
			t.Fatalf("a reader of two got %d", few)
		}
	})
}

// habits are the kinds of selectors that namespaces have: each with a label of its own, or
// with one beside labels that all have, before it, behind it and on both sides.
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

// expressions adds a requirement that is not part of a way.
func expressions(set map[string]string) labels.Selector {
	r, err := labels.NewRequirement("debug", selection.DoesNotExist, nil)
	if err != nil {
		panic(err)
	}
	return labels.SelectorFromSet(set).Add(*r)
}

func TestASearchReadsNoMoreIfThereAreMoreSelectors(t *testing.T) {
	for name, habit := range habits {
		for form, selector := range map[string]func(map[string]string) labels.Selector{
			"labels": func(set map[string]string) labels.Selector { return labels.SelectorFromSet(set) }, "and an expression": expressions,
		} {
			t.Run(name+"/"+form, func(t *testing.T) {
				searches := map[int]forest{}
				for _, n := range []int{10, 5000} {
					var f forest
					for i := range n {
						f.plant(object.Key{Namespace: "shop", Name: fmt.Sprint("svc-", i)}, selector(habit(i)))
					}
					set := habit(7)
					set["pod-template-hash"], set["version"] = "5d4f8c7b9", "v1"
					if found := sorted(f.selecting("shop", set)); len(found) != 1 || found[0].Name != "svc-7" {
						t.Fatalf("of %d selectors %v match", n, found)
					}
					f.places, f.selectors = nil, nil
					searches[n] = f
				}
				few, many := searches[10], searches[5000]
				t.Logf("places %d and %d, keys %d and %d, compared %d and %d", few.lookups, many.lookups, few.keys, many.keys, few.compared, many.compared)
				if few.lookups != many.lookups || few.keys != many.keys || few.compared != many.compared {
					t.Error("the search among 5,000 selectors reads more than the one among 10")
				}
			})
		}
	}
}

func TestASelectorStandsAtFewPlaces(t *testing.T) {
	values := make([]string, 50)
	for i := range values {
		values[i] = fmt.Sprint("v-", i)
	}
	many, err := labels.NewRequirement("a", selection.In, values)
	if err != nil {
		t.Fatal(err)
	}
	two, err := labels.NewRequirement("b", selection.In, []string{"1", "2"})
	if err != nil {
		t.Fatal(err)
	}
	have := places("shop", labels.NewSelector().Add(*many, *two))
	if want := []string{"shop/b=1;,?", "shop/b=2;,?"}; !slices.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
	for _, c := range []struct {
		selector labels.Selector
		want     []string
	}{
		{labels.Nothing(), nil},
		{labels.Everything(), []string{"shop/;"}},
		{labels.SelectorFromSet(map[string]string{"tier": "web", "app": "shop"}), []string{"shop/app=shop;,", "shop/app=shop;,tier=web;"}},
	} {
		if have := places("shop", c.selector); !slices.Equal(have, c.want) {
			t.Errorf("%q stands at %v, want %v", c.selector, have, c.want)
		}
	}
}

func TestTheLabelThatFewObjectsHaveIsRead(t *testing.T) {
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
	for n := range shortest([]iter.Seq2[int, int]{seq(100_000), seq(300), seq(50_000)}) {
		have = n
	}
	if have != 300 {
		t.Errorf("chose the one of %d", have)
	}
	if walked > 10_000 {
		t.Errorf("%d steps to find the shortest of 300", walked)
	}
}
