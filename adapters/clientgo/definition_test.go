// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/object"
)

var gizmos = object.Resource{Group: "example.com", Version: "v1", Plural: "gizmos", Kind: "Gizmo", Namespaced: true}

// putGizmo puts a gizmo of a name on the server.
func (w *world) putGizmo(t *testing.T, name string) {
	t.Helper()
	g := new(unstructured.Unstructured)
	g.SetGroupVersionKind(gizmos.GroupVersionKind())
	g.SetNamespace("team-a")
	g.SetName(name)
	if err := w.Of(gizmos).Put(g); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// heard is a handler of any type of objects, which writes its calls down.
type heard struct {
	mu    sync.Mutex
	calls []string
}

func (h *heard) note(what string, o any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		h.calls = append(h.calls, what+" tombstone "+tombstone.Key+" of "+tombstone.Obj.(metav1.Object).GetName())
		return
	}
	h.calls = append(h.calls, what+" "+o.(metav1.Object).GetName())
}

func (h *heard) OnAdd(o any, initial bool) {
	if initial {
		h.note("initial", o)
		return
	}
	h.note("add", o)
}
func (h *heard) OnUpdate(_, o any) { h.note("update", o) }
func (h *heard) OnDelete(o any)    { h.note("delete", o) }

// was returns the calls since the last call of was, sorted, after those that are due.
func (h *heard) was() string {
	synctest.Wait()
	return h.calledUntilNow()
}

func (h *heard) calledUntilNow() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.calls)
	calls := strings.Join(h.calls, ", ")
	h.calls = nil
	return calls
}

// failures is a handler of the failures of watches. The one that client-go has by default waits until a second
// after the last error of the process, and the time of that error may be one outside of the bubble.
type failures struct {
	mu   sync.Mutex
	errs []error
}

func (f *failures) handle(_ context.Context, _ *cache.Reflector, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// notFound returns how many failures say that the server does not serve the resource, and how many say something else.
func (f *failures) notFound() (count, others int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range f.errs {
		if apierrors.IsNotFound(err) {
			count++
		} else {
			others++
		}
	}
	return count, others
}

// resources returns a factory of a side, of unstructured objects or of metadata.
func (s *side) resources(t *testing.T, form string) started {
	t.Helper()
	if form == "metadata" {
		return s.metadata(t)
	}
	return s.dynamic(t)
}

// compareBoth compares the two sides.
func compareBoth(t *testing.T, c comparison) {
	t.Helper()
	c.Compare(t, func(t *testing.T, ours bool, run func(t *testing.T, s *side)) {
		inWorld(t, func(t *testing.T, w *world) { run(t, &side{w, ours}) })
	})
}

// While the definition is gone, listers have the objects that they had.
func TestHandlersHearOfADefinitionThatGoesAndComes(t *testing.T) {
	for _, form := range []string{"dynamic", "metadata"} {
		t.Run(form, func(t *testing.T) {
			compareBoth(t, comparison{Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
				s.Serve(gizmos)
				s.putGizmo(t, "a")
				s.putGizmo(t, "b")
				factory := s.resources(t, form)
				found := factory.ForResource(gizmos.GroupVersionResource())
				if err := found.Informer().SetWatchErrorHandlerWithContext(new(failures).handle); err != nil {
					t.Fatal(err)
				}
				var got heard
				add(t, found.Informer(), &got)
				defer start(factory)()
				note := func(when string) {
					objects, err := found.Lister().ByNamespace("team-a").List(labels.Everything())
					all := make([]any, len(objects))
					for i := range objects {
						all[i] = objects[i]
					}
					seen.Note("%s: %s; the lister has %s, %v", when, got.was(), names(all), err)
				}
				note("first")
				s.Withdraw(gizmos)
				s.CutConnections()
				time.Sleep(time.Minute)
				note("gone")
				s.Serve(gizmos)
				s.putGizmo(t, "c")
				s.Compact(s.ResourceVersion()) // a real server has no history of the former definition
				time.Sleep(2 * time.Minute)
				note("again")
				s.putGizmo(t, "c")
				note("later")
				want(t, "the side has seen", seen.String(), "first: initial a, initial b; the lister has a b, <nil>\n"+
					"gone: ; the lister has a b, <nil>\n"+
					"again: add c, delete tombstone team-a/a of a, delete tombstone team-a/b of b; the lister has c, <nil>\n"+
					"later: update c; the lister has c, <nil>")
			}})
		})
	}
}

// A definition that an operator installs after its start must not need another start.
func TestAResourceThatIsServedLaterSyncs(t *testing.T) {
	for _, form := range []string{"dynamic", "metadata"} {
		t.Run(form, func(t *testing.T) {
			compareBoth(t, comparison{Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
				factory := s.resources(t, form)
				informer := factory.ForResource(gizmos.GroupVersionResource()).Informer()
				var failed failures
				if err := informer.SetWatchErrorHandlerWithContext(failed.handle); err != nil {
					t.Fatal(err)
				}
				var got heard
				registration := add(t, informer, &got)
				defer start(factory)()
				var before int
				for _, more := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
					time.Sleep(more)
					count, others := failed.notFound()
					seen.Note("tries %t, other failures %t, synced %t", count > before, others > 0, informer.HasSynced() || registration.HasSynced())
					before = count
				}
				s.Serve(gizmos)
				s.putGizmo(t, "a")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				seen.Note("synced %t", cache.WaitFor(ctx, "", informer.HasSyncedChecker(), registration.HasSyncedChecker()))
				seen.Note("%s, has %s", got.was(), names(informer.GetStore().List()))
				s.putGizmo(t, "b")
				seen.Note("%s, has %s", got.was(), names(informer.GetStore().List()))
			}})
		})
	}
}

// As above, for the informers of NewInformer, with an index.
func TestATypedInformerOfAResourceThatIsServedLaterSyncs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Withdraw(pods)
		informer := w.podInformer(t, clientgo.Options{Indexers: podIndexers})
		var failed failures
		if err := informer.SetWatchErrorHandlerWithContext(failed.handle); err != nil {
			t.Fatal(err)
		}
		var got notes
		registration := add(t, informer, &got)
		defer run(t, informer)()
		time.Sleep(time.Hour)
		if count, others := failed.notFound(); count < 10 || others > 0 || informer.HasSynced() || registration.HasSynced() {
			t.Errorf("in an hour without the resource: %d tries, %d other failures, synced %t %t", count, others, informer.HasSynced(), registration.HasSynced())
		}
		w.pods = w.Serve(pods)
		w.put(t, pod("a", on("n")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !cache.WaitFor(ctx, "", informer.HasSyncedChecker(), registration.HasSyncedChecker()) {
			t.Fatal("it has not synced")
		}
		want(t, "the handler got", got.was(), "initial a")
		if found, err := informer.GetIndexer().ByIndex("node", "n"); err != nil || names(found) != "a" {
			t.Errorf("the index has %s %v", names(found), err)
		}
	})
}
