// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// gizmo is the Go type of gizmos.
type gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Size int `json:"size"`
}

func (g *gizmo) DeepCopyObject() runtime.Object {
	c := &gizmo{TypeMeta: g.TypeMeta, Size: g.Size}
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

// The definition of a custom kind may allow what the Go type does not. When a user has mended such an
// object, a reconciler must hear of it.
func TestAnObjectThatCanBeDecodedAtLastIsAdded(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(gizmos.GroupVersionKind(), &gizmo{})
	inWorld(t, crcache.Options{Scheme: scheme}, func(t *testing.T, w *world) {
		put := func(size any) {
			u := unstructuredOf(gizmos.GroupVersionKind())
			u.SetNamespace("team-a")
			u.SetName("a")
			u.Object["size"] = size
			if err := w.api.Of(gizmos).Put(u); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		put("large")
		informer, err := w.cache.GetInformer(t.Context(), &gizmo{})
		if err != nil {
			t.Fatal(err)
		}
		var events []string
		note := func(what string, o any) { events = append(events, fmt.Sprint(what, " ", o.(*gizmo).Size)) }
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { note("add", o) },
			UpdateFunc: func(_, o any) { note("update", o) },
			DeleteFunc: func(o any) { note("delete", o) },
		}); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		put(int64(3))
		put(int64(4))
		if want := []string{"add 3", "update 4"}; !slices.Equal(events, want) {
			t.Errorf("got  %q\nwant %q", events, want)
		}
	})
}
