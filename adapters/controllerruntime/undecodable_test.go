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

	"github.com/setpoint-io/setpoint/object"
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
	inWorld(t, crcache.Options{Scheme: schemeOfGizmos()}, func(t *testing.T, w *world) {
		w.gizmo(t, "large")
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
		w.gizmo(t, int64(3))
		w.gizmo(t, int64(4))
		if want := []string{"add 3", "update 4"}; !slices.Equal(events, want) {
			t.Errorf("got  %q\nwant %q", events, want)
		}
	})
}

// The owner of an object must hear of its deletion, whatever the object contains.
func TestTheDeletionOfAnObjectThatCannotBeDecodedHasItsMetadata(t *testing.T) {
	inWorld(t, crcache.Options{Scheme: schemeOfGizmos()}, func(t *testing.T, w *world) {
		w.gizmo(t, int64(3))
		informer, err := w.cache.GetInformer(t.Context(), &gizmo{})
		if err != nil {
			t.Fatal(err)
		}
		var deleted []any
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			DeleteFunc: func(o any) { deleted = append(deleted, o) },
		}); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		w.gizmo(t, "large")
		w.api.Of(gizmos).Remove(object.Key{Namespace: "team-a", Name: "a"})
		synctest.Wait()
		if len(deleted) != 1 {
			t.Fatalf("the handler got %d deletions, want 1", len(deleted))
		}
		tombstone, ok := deleted[0].(toolscache.DeletedFinalStateUnknown)
		if !ok || tombstone.Key != "team-a/a" {
			t.Fatalf("got %#v", deleted[0])
		}
		last, ok := tombstone.Obj.(*gizmo)
		if !ok || last.Namespace != "team-a" || last.Name != "a" || last.UID == "" || last.Labels["of"] != "owner" || last.Size != 0 {
			t.Errorf("the tombstone has %#v", tombstone.Obj)
		}
	})
}

func schemeOfGizmos() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(gizmos.GroupVersionKind(), &gizmo{})
	return scheme
}

// gizmo puts a gizmo on the server, whose size may be one that the Go type does not have.
func (w *world) gizmo(t *testing.T, size any) {
	t.Helper()
	u := unstructuredOf(gizmos.GroupVersionKind())
	u.SetNamespace("team-a")
	u.SetName("a")
	u.SetLabels(map[string]string{"of": "owner"})
	u.Object["size"] = size
	if err := w.api.Of(gizmos).Put(u); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}
