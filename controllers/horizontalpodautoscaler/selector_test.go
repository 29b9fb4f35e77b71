// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

// The search by one label finds those that a comparison of all selectors finds, while selectors change, come and go.
func TestThoseWithTheSamePodsAreFoundAsByAComparisonOfAll(t *testing.T) {
	requirements := []string{"app=web", "app=db", "app==web", "app in (web)", "app in (web,db)", "app", "!app", "app!=db", "tier=front", "tier notin (back)"}
	rapid.Check(t, func(t *rapid.T) {
		var targets targetSelectors
		all := map[object.Key]selection{}
		drawKey := func() object.Key {
			return object.Key{Namespace: rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace"), Name: fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "name"))}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			key := drawKey()
			if rapid.IntRange(0, 4).Draw(t, "forget") == 0 {
				targets.forget(key)
				delete(all, key)
				continue
			}
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(requirements), 0, 2).Draw(t, "selector"), ",")
			selector, problem := targets.parse(key, text)
			if want, _ := parseSelector(text); (want == nil) != (selector == nil) || (problem == nil) != (want != nil) || want != nil && want.String() != selector.String() {
				t.Fatalf("%q of %s is parsed as %v (%v), want %v", text, key, selector, problem, want)
			}
			s := selection{text: text, selector: selector, target: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "target")), own: rapid.Bool().Draw(t, "own")}
			targets.put(key, s)
			all[key] = s
		}
		key := drawKey()
		var pods []*corev1.Pod
		for range rapid.IntRange(0, 4).Draw(t, "pods") {
			labels := map[string]string{}
			for _, name := range []string{"app", "tier"} {
				if value := rapid.SampledFrom([]string{"", "web", "db", "front", "back"}).Draw(t, name); value != "" {
					labels[name] = value
				}
			}
			pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Labels: labels}})
		}
		var want []object.Key
		for other, s := range all {
			if other.Namespace == key.Namespace && slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return s.counts(all[key], p.Labels) }) {
				want = append(want, other)
			}
		}
		slices.SortFunc(want, func(a, b object.Key) int { return strings.Compare(a.String(), b.String()) })
		want = want[:min(len(want), 2)]
		if got := targets.sharing(key, pods); !slices.Equal(got, want) {
			t.Fatalf("with the Pods of %s are %v, want %v", key, got, want)
		}
		for other := range all {
			if !targets.known(other) {
				t.Fatalf("%s is not known", other)
			}
		}
		for _, n := range targets.in {
			if len(n.of) == 0 {
				t.Fatal("a namespace without any is kept")
			}
			kept := 0
			for l, keys := range n.at {
				if kept += len(keys); len(keys) == 0 {
					t.Fatalf("the label %v without any is kept", l)
				}
			}
			if kept != len(n.of) {
				t.Fatalf("%d labels are of %d selections", kept, len(n.of))
			}
		}
	})
}

// Where all Pods have one label in common, the selectors are found by another one.
func TestSelectorsAreFoundByTheLabelThatFewRequire(t *testing.T) {
	for _, form := range []string{"company=acme,name=web-%d", "name=web-%d,team=acme"} {
		var targets targetSelectors
		for i := range 100 {
			key := object.Key{Namespace: "shop", Name: fmt.Sprint(i)}
			text := fmt.Sprintf(form, i)
			selector, _ := targets.parse(key, text)
			targets.put(key, selection{text: text, selector: selector})
		}
		for l, keys := range targets.in["shop"].at {
			if len(keys) > 1 {
				t.Errorf("%d selectors of the form %s are found by %v", len(keys), form, l)
			}
		}
	}
}
