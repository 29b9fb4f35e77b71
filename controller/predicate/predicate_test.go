// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var key = object.Key{Namespace: "ns", Name: "web"}

// withPod runs a test with a server that has Pod ns/web, of generation 1, and an informer that
// has listed it. events returns what the informer has delivered so far.
func withPod(t *testing.T, test func(t *testing.T, server *fakeapi.Resource, events func() []cache.Event[*corev1.Pod])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
		if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}}); err != nil {
			t.Fatal(err)
		}
		api, err := client.New(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		factory := cache.NewFactory(api, nil)
		pods := cache.Informer[*corev1.Pod](factory)
		var delivered []cache.Event[*corev1.Pod]
		registration, err := pods.AddHandler(func(e cache.Event[*corev1.Pod]) { delivered = append(delivered, e) }, cache.HandlerOptions{EveryStep: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- factory.Run(ctx) }()
		test(t, server, func() []cache.Event[*corev1.Pod] {
			synctest.Wait()
			return delivered
		})
		registration.Remove()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the factory: %v", err)
		}
	})
}

// patch changes the metadata of the Pod; a value of nil removes a field.
func patch(t *testing.T, server *fakeapi.Resource, metadata map[string]any) {
	t.Helper()
	o := server.Get(key)
	have := o.Object["metadata"].(map[string]any)
	maps.Copy(have, metadata)
	maps.DeleteFunc(have, func(_ string, value any) bool { return value == nil })
	if err := server.Put(o); err != nil {
		t.Fatal(err)
	}
}

func TestPredicatesChooseUpdatesByWhatChanged(t *testing.T) {
	predicates := map[string]controller.Predicate[*corev1.Pod]{
		"GenerationChanged":  predicate.GenerationChanged[*corev1.Pod],
		"LabelsChanged":      predicate.LabelsChanged[*corev1.Pod],
		"AnnotationsChanged": predicate.AnnotationsChanged[*corev1.Pod],
		"Selected":           predicate.Selected[*corev1.Pod](labels.SelectorFromSet(labels.Set{"a": "b"})),
		"Selected by nil":    predicate.Selected[*corev1.Pod](nil),
		"Either":             predicate.Either(predicate.LabelsChanged[*corev1.Pod], predicate.GenerationChanged[*corev1.Pod]),
		"Stays":              predicate.Stays[*corev1.Pod],
		"Gone":               predicate.Gone[*corev1.Pod],
		"Later":              predicate.Later[*corev1.Pod],
	}
	withPod(t, func(t *testing.T, server *fakeapi.Resource, events func() []cache.Event[*corev1.Pod]) {
		check := func(what string, want ...string) {
			t.Helper()
			all := events()
			last := all[len(all)-1]
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
		check("an object that was there", "AnnotationsChanged", "Either", "GenerationChanged", "LabelsChanged", "Selected by nil", "Stays")
		for _, c := range []struct {
			what     string
			metadata map[string]any
			chosen   []string // beside those that choose every later update
		}{
			{"a generation", map[string]any{"generation": int64(2)}, []string{"Either", "GenerationChanged"}},
			{"an annotation", map[string]any{"annotations": map[string]any{"x": "y"}}, []string{"AnnotationsChanged"}},
			{"a label", map[string]any{"labels": map[string]any{"a": "b"}}, []string{"Either", "LabelsChanged", "Selected"}},
			{"a finalizer", map[string]any{"finalizers": []any{"example.com/f"}}, []string{"Selected"}},
			{"a label that goes", map[string]any{"labels": nil}, []string{"Either", "LabelsChanged", "Selected"}},
			{"a deletion timestamp", map[string]any{"deletionTimestamp": "2000-01-01T00:00:00Z"}, []string{"Either", "GenerationChanged"}},
			{"an object that is being deleted", map[string]any{"finalizers": []any{"example.com/g"}}, nil},
			{"a kind without generations", map[string]any{"generation": nil}, []string{"Either", "GenerationChanged"}},
		} {
			patch(t, server, c.metadata)
			want := append([]string{"Later", "Selected by nil", "Stays"}, c.chosen...)
			slices.Sort(want)
			check(c.what, want...)
		}
		server.Remove(key)
		check("an object that is gone", "AnnotationsChanged", "Either", "GenerationChanged", "Gone", "LabelsChanged", "Later", "Selected by nil")
	})
}

func TestPredicatesOfMetadataDecodeNothing(t *testing.T) {
	withPod(t, func(t *testing.T, server *fakeapi.Resource, events func() []cache.Event[*corev1.Pod]) {
		events()
		patch(t, server, map[string]any{"labels": map[string]any{"a": "b"}, "generation": int64(2)})
		all := events()
		update := all[len(all)-1]
		if n := testing.AllocsPerRun(100, func() {
			predicate.GenerationChanged(update)
			predicate.LabelsChanged(update)
		}); n != 0 {
			t.Errorf("%v allocations; a decode would be many", n)
		}
	})
}
