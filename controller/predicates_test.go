// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
)

func TestPredicatesChooseUpdatesByWhatChanged(t *testing.T) {
	predicates := map[string]controller.Predicate[*corev1.Pod]{
		"GenerationChanged":  controller.GenerationChanged[*corev1.Pod],
		"LabelsChanged":      controller.LabelsChanged[*corev1.Pod],
		"AnnotationsChanged": controller.AnnotationsChanged[*corev1.Pod],
		"Selected":           controller.Selected[*corev1.Pod](labels.SelectorFromSet(labels.Set{"a": "b"})),
		"Selected by nil":    controller.Selected[*corev1.Pod](nil),
		"Either":             controller.Either(controller.LabelsChanged[*corev1.Pod], controller.GenerationChanged[*corev1.Pod]),
	}
	inBubble(t, func(t *testing.T, b *bubble) {
		b.patch("parent", map[string]any{"generation": 1})
		synctest.Wait()
		var last cache.Event[*corev1.Pod]
		registration, err := b.pods.AddHandler(func(e cache.Event[*corev1.Pod]) { last = e }, cache.HandlerOptions{EveryStep: true})
		if err != nil {
			t.Fatal(err)
		}
		defer registration.Remove()
		synctest.Wait()
		all := []string{"AnnotationsChanged", "Either", "GenerationChanged", "LabelsChanged", "Selected by nil"}
		check := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			var chosen []string
			for _, name := range slices.Sorted(maps.Keys(predicates)) {
				if predicates[name](last) {
					chosen = append(chosen, name)
				}
			}
			if !slices.Equal(chosen, want) {
				t.Errorf("%s (%s) is chosen by %v, want %v", what, last.Kind, chosen, want)
			}
		}
		check("an object that was there", all...)
		for _, c := range []struct {
			what     string
			metadata map[string]any
			chosen   []string
		}{
			{"a generation", map[string]any{"generation": 2}, []string{"Either", "GenerationChanged", "Selected by nil"}},
			{"an annotation", map[string]any{"annotations": map[string]any{"x": "y"}}, []string{"AnnotationsChanged", "Selected by nil"}},
			{"a label", map[string]any{"labels": map[string]any{"a": "b"}}, []string{"Either", "LabelsChanged", "Selected", "Selected by nil"}},
			{"nothing that is looked at", map[string]any{"finalizers": []string{"example.com/f"}}, []string{"Selected", "Selected by nil"}},
			{"a label that goes", map[string]any{"labels": nil}, []string{"Either", "LabelsChanged", "Selected", "Selected by nil"}},
			{"a deletion timestamp", map[string]any{"deletionTimestamp": "2000-01-01T00:00:00Z"}, []string{"Either", "GenerationChanged", "Selected by nil"}},
			{"an object that is being deleted", map[string]any{"finalizers": []string{"example.com/g"}}, []string{"Selected by nil"}},
			{"a kind without generations", map[string]any{"generation": nil}, []string{"Either", "GenerationChanged", "Selected by nil"}},
		} {
			b.patch("parent", c.metadata)
			check(c.what, c.chosen...)
		}
		b.line.to().Remove(key("parent"))
		check("an object that is gone", all...)
	})
}

func TestPredicatesOfMetadataDecodeNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var events []cache.Event[*corev1.Pod]
		registration, err := b.pods.AddHandler(func(e cache.Event[*corev1.Pod]) { events = append(events, e) }, cache.HandlerOptions{EveryStep: true})
		if err != nil {
			t.Fatal(err)
		}
		defer registration.Remove()
		b.patch("parent", map[string]any{"labels": map[string]any{"a": "b"}, "generation": 2})
		synctest.Wait()
		update := events[len(events)-1]
		if n := testing.AllocsPerRun(100, func() {
			controller.GenerationChanged(update)
			controller.LabelsChanged(update)
		}); n != 0 {
			t.Errorf("%v allocations; a decode would be many", n)
		}
	})
}
