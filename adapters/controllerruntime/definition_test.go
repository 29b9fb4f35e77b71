// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
)

// gizmoItems is the list of gizmos, which the cache of controller-runtime decodes.
type gizmoItems struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []gizmo `json:"items"`
}

func (g *gizmoItems) DeepCopyObject() runtime.Object {
	c := *g
	c.Items = slices.Clone(g.Items)
	return &c
}

// listableGizmos is a scheme in which gizmos have a list.
func listableGizmos() *runtime.Scheme {
	scheme, version := schemeOfGizmos(), gizmos.GroupVersionKind().GroupVersion()
	scheme.AddKnownTypeWithName(version.WithKind("GizmoList"), &gizmoItems{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}

// gizmoViews are empty gizmos in the three views.
func gizmoViews() map[string]func() crclient.Object {
	return map[string]func() crclient.Object{
		"typed":        func() crclient.Object { return &gizmo{} },
		"unstructured": func() crclient.Object { return unstructuredOf(gizmos.GroupVersionKind()) },
		"metadata":     func() crclient.Object { return metadataOf(gizmos.GroupVersionKind()) },
	}
}

// putGizmo puts a gizmo of a name on the server.
func (w *world) putGizmo(t *testing.T, name string) {
	t.Helper()
	g := unstructuredOf(gizmos.GroupVersionKind())
	g.SetNamespace("team-a")
	g.SetName(name)
	g.Object["size"] = int64(3)
	if err := w.api.Of(gizmos).Put(g); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// redefine makes changes after the definition of gizmos has gone and come again, and calls gone between the two.
func (w *world) redefine(t *testing.T, gone, changes func()) {
	t.Helper()
	w.api.Withdraw(gizmos)
	w.api.CutConnections()
	time.Sleep(time.Minute)
	synctest.Wait()
	gone()
	w.api.Serve(gizmos)
	changes()
	w.api.Compact(w.api.ResourceVersion()) // a real server has no history of the former definition
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

// ignoreFailures is for tests in which a watch fails. The handler that client-go has by default waits until a
// second after the last error of the process, and the time of that error may be one outside of the bubble.
func ignoreFailures(context.Context, *toolscache.Reflector, error) {}

// The peer is the cache of controller-runtime. While the definition is gone, both have the objects that they had.
func TestHandlersHearOfADefinitionThatGoesAndComes(t *testing.T) {
	for _, viewed := range []string{"typed", "unstructured", "metadata", "typed unstructured metadata", "metadata typed"} {
		t.Run(viewed, func(t *testing.T) {
			c := methodtest.Comparison[*world]{Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
				w.putGizmo(t, "a")
				w.putGizmo(t, "b")
				defer w.start(t)()
				names := strings.Fields(viewed)
				got := make([]events, len(names))
				for i, name := range names {
					informer, err := w.cache.GetInformer(soon(t), gizmoViews()[name]())
					if err != nil {
						t.Fatal(err)
					}
					if _, err := informer.AddEventHandler(&got[i]); err != nil {
						t.Fatal(err)
					}
				}
				note := func(when string) {
					synctest.Wait()
					for i, name := range names {
						seen.Note("%s, %s: %s", when, name, sortedWords(got[i].was()))
						for _, key := range []string{"a", "b", "c"} {
							err := w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-a", Name: key}, gizmoViews()[name]())
							seen.Note("reading %s: %v", key, err)
						}
					}
				}
				note("first")
				w.redefine(t, func() { note("gone") }, func() { w.putGizmo(t, "c") })
				note("again")
				w.putGizmo(t, "c")
				note("later")
				if heard := seen.String(); !strings.Contains(heard, "again, "+names[0]+": add c, delete tombstone team-a/a, delete tombstone team-a/b\n") {
					t.Errorf("the handlers of the first view got something else:\n%s", heard)
				}
			}}
			c.Compare(t, func(t *testing.T, ours bool, run func(*testing.T, *world)) {
				build := newPeer
				if ours {
					build = controllerruntime.NewCache
				}
				inWorldWith(t, func(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
					o.Scheme = listableGizmos()
					o.DefaultWatchErrorHandler = ignoreFailures
					return build(config, o)
				}, run)
			})
		})
	}
}
