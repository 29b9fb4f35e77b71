// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A reader of metadata often comes first: a watch of dependents, say. It does not cost a second copy.
func TestAMetadataViewThatComesFirstSharesTheStoreOfALaterView(t *testing.T) {
	for name, later := range map[string]crclient.Object{"typed": &corev1.Pod{}, "unstructured": unstructuredOf(podKind)} {
		for _, started := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, started %t", name, started), func(t *testing.T) {
				inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
					w.pod(t, "team-a", "a", on("node-1"), labelled("app", "web"))
					ctx := t.Context()
					stop := func() {}
					if started {
						stop = w.start(t)
					}
					informer, err := w.cache.GetInformer(ctx, metadataOf(podKind))
					if err != nil {
						t.Fatal(err)
					}
					got := new(told)
					registration, err := informer.AddEventHandler(got)
					if err != nil {
						t.Fatal(err)
					}
					byApp := func(o crclient.Object) []string { return []string{o.GetLabels()["app"]} }
					if err := w.cache.IndexField(ctx, metadataOf(podKind), "app", byApp); err != nil {
						t.Fatal(err)
					}
					if _, err := w.cache.GetInformer(ctx, later); err != nil {
						t.Fatal(err)
					}
					if !started {
						stop = w.start(t)
					}
					defer stop()
					time.Sleep(time.Minute)
					synctest.Wait()
					if all := controllerruntime.FactoryOf(w.cache).Status(); len(all) != 1 || !all[0].Synced || len(all[0].Handlers) != 1 {
						t.Errorf("the kind has the informers %+v", all)
					}
					if got := w.openWatches(); got != 1 {
						t.Errorf("%d watches are open", got)
					}
					if !informer.HasSynced() || !registration.HasSynced() {
						t.Error("the view of metadata has not synced")
					}
					w.pod(t, "team-a", "b", labelled("app", "db"))
					w.pod(t, "team-a", "a", labelled("app", "db"))
					w.api.Of(pods).Remove(object.Key{Namespace: "team-a", Name: "b"})
					synctest.Wait()
					if want := []string{"add a true", "add b false", "update a", "delete b"}; !slices.Equal(got.take(), want) {
						t.Errorf("the handler got %q, want %q", got.take(), want)
					}
					var list metav1.PartialObjectMetadataList
					list.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
					for _, options := range [][]crclient.ListOption{nil, {crclient.UnsafeDisableDeepCopy}, {crclient.MatchingFields{"app": "db"}}} {
						if err := w.cache.List(ctx, &list, options...); err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" || list.Items[0].Kind != "Pod" {
							t.Errorf("a list of metadata with %v: %v, %v", options, list.Items, err)
						}
					}
					if err := w.cache.RemoveInformer(ctx, later); err != nil {
						t.Fatal(err)
					}
					w.pod(t, "team-a", "c")
					if got := got.take(); !slices.Equal(got[len(got)-1:], []string{"add c false"}) {
						t.Errorf("after the later view was removed, the handler got %q", got)
					}
					if err := informer.RemoveEventHandler(registration); err != nil {
						t.Fatal(err)
					}
					if _, err := w.cache.GetInformer(ctx, later); err != nil {
						t.Fatal(err)
					}
					if err := w.cache.RemoveInformer(ctx, metadataOf(podKind)); err != nil {
						t.Fatal(err)
					}
					if err := w.cache.Get(ctx, crclient.ObjectKey{Namespace: "team-a", Name: "c"}, later.DeepCopyObject().(crclient.Object)); err != nil {
						t.Errorf("a read in the later view: %v", err)
					}
				})
			})
		}
	}
}

// openWatches counts the watches that the client has not ended.
func (w *world) openWatches() int {
	n := 0
	for _, r := range w.api.Requests() {
		if r.Verb == "watch" && r.HTTP.Context().Err() == nil {
			n++
		}
	}
	return n
}

// told is a handler that notes what it gets.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (l *told) note(format string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, values...))
}

func (l *told) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func nameOf(o any) string { return o.(*metav1.PartialObjectMetadata).Name }

func (l *told) OnAdd(o any, initial bool) { l.note("add %s %t", nameOf(o), initial) }
func (l *told) OnUpdate(_, o any)         { l.note("update %s", nameOf(o)) }
func (l *told) OnDelete(o any)            { l.note("delete %s", nameOf(o)) }

// Whatever changes while the view moves, its handler gets each state once, in order, and never an older
// one than a reader has seen.
func TestNoEventIsMissedOrDoubledWhileAViewMoves(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		for i := range 50 {
			w.pod(t, "team-a", fmt.Sprint("pod-", i))
		}
		defer w.start(t)()
		ctx, cancel := context.WithCancel(t.Context())
		informer, err := w.cache.GetInformer(ctx, metadataOf(podKind))
		if err != nil {
			t.Fatal(err)
		}
		steps := &history{known: map[string]string{}}
		if _, err := informer.AddEventHandler(steps); err != nil {
			t.Fatal(err)
		}
		var tasks sync.WaitGroup
		var written []string // what a handler must get of each change
		tasks.Go(func() {
			for ctx.Err() == nil {
				name := fmt.Sprint("pod-", random.IntN(60))
				key := object.Key{Namespace: "team-a", Name: name}
				if random.IntN(4) == 0 {
					if was := w.api.Of(pods).Get(key); was != nil && w.api.Of(pods).Remove(key) {
						written = append(written, "delete "+name)
					}
				} else {
					p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: map[string]string{"n": fmt.Sprint(random.Uint64())}}}
					if err := w.api.Of(pods).Put(p); err != nil {
						t.Error(err)
					}
					written = append(written, "put "+w.api.Of(pods).Get(key).GetResourceVersion())
				}
				time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
			}
		})
		time.Sleep(100 * time.Millisecond)
		if err := w.cache.Get(ctx, crclient.ObjectKey{Namespace: "team-a", Name: "pod-0"}, &corev1.Pod{}); crclient.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if n := len(controllerruntime.FactoryOf(w.cache).Status()); n != 1 {
			t.Errorf("the kind has %d informers while it changes", n)
		}
		cancel()
		tasks.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.openWatches(); got != 1 {
			t.Errorf("%d watches are open", got)
		}
		for _, wrong := range steps.wrong {
			t.Error(wrong)
		}
		got := steps.steps[50:] // after the first list
		if !slices.Equal(got, written) {
			t.Errorf("the handler got %d changes, and %d were made; %s", len(got), len(written), firstDifference(got, written))
		}
		left := sets.New(w.api.Of(pods).Keys()...)
		if len(left) != len(steps.known) {
			t.Errorf("the handler knows %d objects, and the server has %d", len(steps.known), len(left))
		}
	})
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("number %d is %q, want %q", i, got[i], want[i])
		}
	}
	return "the shorter one is the beginning of the other"
}

// history is a handler that checks that each event begins where the one before it ended.
type history struct {
	steps []string
	known map[string]string // version by name
	wrong []string
}

func (h *history) set(o any, was, what string) {
	m := o.(*metav1.PartialObjectMetadata)
	if h.known[m.Name] != was {
		h.wrong = append(h.wrong, fmt.Sprintf("%s of %s begins at %q, the handler knows %q", what, m.Name, was, h.known[m.Name]))
	}
	h.known[m.Name] = m.ResourceVersion
	h.steps = append(h.steps, "put "+m.ResourceVersion)
}

func (h *history) OnAdd(o any, _ bool) { h.set(o, "", "the addition") }

func (h *history) OnUpdate(was, is any) {
	h.set(is, was.(*metav1.PartialObjectMetadata).ResourceVersion, "the update")
}

func (h *history) OnDelete(o any) {
	if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		h.wrong = append(h.wrong, "the deletion of "+unknown.Key+" was not watched")
		o = unknown.Obj
	}
	m := o.(*metav1.PartialObjectMetadata)
	if h.known[m.Name] == "" {
		h.wrong = append(h.wrong, "the deletion of "+m.Name+", which the handler does not know")
	}
	delete(h.known, m.Name)
	h.steps = append(h.steps, "delete "+m.Name)
}

// The view of metadata goes on if the later view cannot list.
func TestAViewStaysWhereItIsUntilALaterOneHasSynced(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		informer, err := w.cache.GetInformer(t.Context(), metadataOf(podKind))
		if err != nil {
			t.Fatal(err)
		}
		got := new(told)
		if _, err := informer.AddEventHandler(got); err != nil {
			t.Fatal(err)
		}
		var refused atomic.Bool
		refused.Store(true)
		w.api.Before(func(*fakeapi.Request) *metav1.Status {
			if refused.Load() {
				return fakeapi.Unavailable(1)
			}
			return nil
		})
		if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}, crcache.BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.pod(t, "team-a", "b")
		if want := []string{"add a true", "add b false"}; !slices.Equal(got.take(), want) {
			t.Errorf("the handler got %q, want %q", got.take(), want)
		}
		refused.Store(false)
		time.Sleep(2 * time.Minute)
		w.pod(t, "team-a", "c")
		if want := []string{"add a true", "add b false", "add c false"}; !slices.Equal(got.take(), want) {
			t.Errorf("the handler got %q, want %q", got.take(), want)
		}
		if got := len(controllerruntime.FactoryOf(w.cache).Status()); got != 1 {
			t.Errorf("the kind has %d informers", got)
		}
	})
}
