// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
)

// The size of the second gizmo does not fit the Go type, so a reader of metadata that decodes the whole
// object gets an error.
func TestMetadataIsReadFromATypedStoreWithoutDecodingTheObject(t *testing.T) {
	for name, size := range map[string]any{"content that fits the Go type": int64(3), "content that does not fit": "large"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, crcache.Options{Scheme: schemeOfGizmos()}, func(t *testing.T, w *world) {
				w.gizmo(t, size)
				defer w.start(t)()
				if _, err := w.cache.GetInformer(t.Context(), &gizmo{}); err != nil {
					t.Fatal(err)
				}
				heard := ownersHeard(t, w)
				budget, key := controllerruntime.FactoryOf(w.cache).Budget(), crclient.ObjectKey{Namespace: "team-a", Name: "a"}
				for range 20 {
					one, all := metadataOf(gizmos.GroupVersionKind()), gizmoMetadata()
					if err := w.cache.Get(t.Context(), key, one); err != nil || one.Labels["of"] != "owner" || one.UID == "" {
						t.Fatalf("Get: %v, %v", err, one)
					}
					if err := w.cache.List(t.Context(), all, crclient.MatchingLabels{"of": "owner"}); err != nil || len(all.Items) != 1 || all.Items[0].UID != one.UID {
						t.Fatalf("List: %v, %v", err, all.Items)
					}
				}
				w.gizmo(t, size)
				if got := heard(); got != "add owner, update owner" {
					t.Errorf("the handler got %q", got)
				}
				if got := budget.Status().Decodes; got != 0 {
					t.Errorf("40 reads of metadata decoded %d objects", got)
				}
				if got := w.requests("watch"); got != 1 {
					t.Errorf("the two views have %d watches, want 1", got)
				}
				// A typed read decodes: that is what the budget counts.
				err, fits := w.cache.Get(t.Context(), key, &gizmo{}), size != "large"
				if decoded := budget.Status().Decodes == 1; decoded != fits || (err == nil) != fits {
					t.Errorf("a typed read: %v, with %d decodes", err, budget.Status().Decodes)
				}
			})
		})
	}
}

// ownersHeard adds a handler of metadata. It returns what the handler has got: the label "of" of each object.
func ownersHeard(t *testing.T, w *world) func() string {
	t.Helper()
	var got events
	owner := func(o any) *metav1.PartialObjectMetadata {
		m := o.(*metav1.PartialObjectMetadata).DeepCopy()
		m.Name = m.Labels["of"]
		return m
	}
	informer, err := w.cache.GetInformer(t.Context(), metadataOf(gizmos.GroupVersionKind()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { got.OnAdd(owner(o), false) },
		UpdateFunc: func(before, after any) { got.OnUpdate(owner(before), owner(after)) },
	}); err != nil {
		t.Fatal(err)
	}
	return func() string { synctest.Wait(); return got.was() }
}

// gizmoMetadata is an empty list of the metadata of gizmos.
func gizmoMetadata() *metav1.PartialObjectMetadataList {
	list := new(metav1.PartialObjectMetadataList)
	list.SetGroupVersionKind(gizmos.GroupVersionKind().GroupVersion().WithKind("GizmoList"))
	return list
}

// soon is long enough for all that a server in memory answers.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
