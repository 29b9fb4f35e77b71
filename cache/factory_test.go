// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/fakeapi"
	"github.com/setpoint-io/setpoint/object"
)

var pods = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// world is a server in memory and a factory that reads from it, inside a bubble in
// which no time passes unless somebody waits.
type world struct {
	server  *fakeapi.Server
	factory *cache.Factory
	log     *bytes.Buffer
}

// inWorld runs a test. The bubble fails if a goroutine is left when it ends.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{server: fakeapi.InMemory(pods), log: new(bytes.Buffer)}
		c, err := client.New(w.server.Config())
		if err != nil {
			t.Fatal(err)
		}
		w.factory = cache.NewFactory(c, slog.New(slog.NewTextHandler(w.log, nil)))
		test(t, w)
	})
}

// run runs the factory until the returned function is called.
func (w *world) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.factory.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (w *world) add(t *testing.T, name string, change ...func(*corev1.Pod)) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
	for _, c := range change {
		c(p)
	}
	if err := w.server.Add(p); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func TestWhoAsksForTheSameGetsTheSameInformer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := cache.Informer[*corev1.Pod](w.factory)
		for name, same := range map[string]bool{
			"once more":             cache.Informer[*corev1.Pod](w.factory) == first,
			"metadata of the whole": cache.Informer[*metav1.PartialObjectMetadata](w.factory, cache.OfKind(corev1.SchemeGroupVersion.WithKind("Pod"))).Handle() == first.Handle(),
		} {
			if !same {
				t.Errorf("%s: another informer", name)
			}
		}
		others := []cache.Handle{
			first.Handle(),
			cache.Informer[*corev1.Pod](w.factory, cache.InNamespace("team-a")).Handle(),
			cache.Informer[*corev1.Pod](w.factory, cache.WithLabels("a=b")).Handle(),
			cache.Informer[*corev1.Pod](w.factory, cache.WithFields("spec.nodeName=n")).Handle(),
			cache.Informer[*corev1.Pod](w.factory, cache.WithManagedFields()).Handle(),
			cache.Informer[*unstructured.Unstructured](w.factory, cache.OfKind(corev1.SchemeGroupVersion.WithKind("Pod"))).Handle(),
			cache.Informer[*corev1.Pod](w.factory, cache.Transform(func(p *corev1.Pod) (*corev1.Pod, error) { return p, nil })).Handle(),
			cache.Informer[*corev1.Pod](w.factory, cache.Transform(func(p *corev1.Pod) (*corev1.Pod, error) { return p, nil })).Handle(),
		}
		seen := map[cache.Handle]bool{}
		for i, h := range others {
			if seen[h] {
				t.Errorf("selection %d is served by the informer of another", i)
			}
			seen[h] = true
		}
	})
}

func TestTheFactorySaysWhereTwoInformersHoldTheSameObjects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cache.Informer[*corev1.Pod](w.factory, cache.InNamespace("team-a"))
		cache.Informer[*corev1.Pod](w.factory, cache.InNamespace("team-b"))
		if w.log.Len() > 0 {
			t.Errorf("two namespaces hold nothing twice: %s", w.log)
		}
		cache.Informer[*corev1.Pod](w.factory)
		if text := w.log.String(); strings.Count(text, "two informers hold objects of one kind") != 2 || !strings.Contains(text, `one="in team-a" other="all, whole"`) {
			t.Errorf("logged: %s", text)
		}
	})
}

func TestTheLastReferenceStopsAnInformerAndNothingOfItIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-1")
		defer w.run(t)()
		before := runtime.NumGoroutine()
		one, two := cache.Informer[*corev1.Pod](w.factory), cache.Informer[*corev1.Pod](w.factory)
		told := 0
		if _, err := one.AddHandler(func(cache.Event[*corev1.Pod]) { told++ }, cache.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		one.Release()
		w.add(t, "web-2")
		if two.Snapshot().Len() != 2 || told != 2 {
			t.Errorf("with one reference left: %d objects, told of %d", two.Snapshot().Len(), told)
		}
		held := two.Snapshot()
		two.Release()
		synctest.Wait()
		w.add(t, "web-3")
		if told != 2 || held.Len() != 2 {
			t.Errorf("after the last reference was given back: told of %d, the snapshot has %d", told, held.Len())
		}
		if after := runtime.NumGoroutine(); after != before {
			t.Errorf("%d goroutines, %d before there was an informer", after, before)
		}
		if len(w.factory.Status()) != 0 {
			t.Error("the factory still knows it")
		}
		if _, err := one.AddHandler(func(cache.Event[*corev1.Pod]) {}, cache.HandlerOptions{}); err == nil {
			t.Error("a handler was added to an informer that has stopped")
		}
		two.Release() // once too often is nothing
		again := cache.Informer[*corev1.Pod](w.factory)
		synctest.Wait()
		if again.Handle() == one.Handle() || again.Snapshot().Len() != 3 {
			t.Errorf("asked for again: %d objects", again.Snapshot().Len())
		}
	})
}

func TestAnInformerAskedForWhileTheFactoryStopsIsStopped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.run(t)()
		informer := cache.Informer[*corev1.Pod](w.factory)
		err := informer.WaitForSync(t.Context())
		if err == nil || !strings.Contains(err.Error(), "has stopped") {
			t.Errorf("waiting for it: %v", err)
		}
	})
}

func TestMetadataIsReadFromAnInformerOfWholeObjects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-1", func(p *corev1.Pod) {
			p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"note": "x"}
			p.Spec.NodeName = "n1"
		})
		cache.Informer[*corev1.Pod](w.factory)
		view := cache.Informer[*metav1.PartialObjectMetadata](w.factory, cache.OfKind(corev1.SchemeGroupVersion.WithKind("Pod")))
		defer w.run(t)()
		o, err := view.Get(object.Key{Namespace: "team-a", Name: "web-1"})
		if err != nil || o.Labels["app"] != "web" || o.Annotations["note"] != "x" || o.Name != "web-1" || o.UID == "" {
			t.Errorf("%+v, %v", o, err)
		}
		if n := len(w.factory.Status()); n != 1 {
			t.Errorf("%d informers for one kind", n)
		}
	})
}

func TestATransformThatFailsLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-1")
		calls, failing := 0, false
		informer := cache.Informer[*corev1.Pod](w.factory, cache.Transform(func(p *corev1.Pod) (*corev1.Pod, error) {
			calls++
			if failing && p.Name == "web-2" {
				return nil, errors.New("cannot")
			}
			if failing && p.Name == "web-3" {
				panic("oh")
			}
			p.Spec = corev1.PodSpec{NodeName: "by transform"}
			return p, nil
		}))
		defer w.run(t)()
		o, err := informer.Get(object.Key{Namespace: "team-a", Name: "web-1"})
		if err != nil || o.Spec.NodeName != "by transform" {
			t.Errorf("%+v, %v", o, err)
		}
		if calls != 1 {
			t.Errorf("the transform was called %d times for one object", calls)
		}
		failing = true
		w.add(t, "web-2")
		if err := informer.Trouble(); err == nil || !strings.Contains(err.Error(), "cannot") {
			t.Errorf("trouble: %v", err)
		}
		w.add(t, "web-3")
		time.Sleep(time.Hour)
		if text := w.log.String(); strings.Count(text, "an object cannot be used") == 0 || strings.Count(text, "\n") > 20 {
			t.Errorf("logged in an hour: %s", text)
		}
		failing = false
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := informer.Snapshot().Len(); n != 3 || informer.Trouble() != nil {
			t.Errorf("%d objects when the transform works again, trouble %v", n, informer.Trouble())
		}
	})
}

func TestAnObjectOfTheCacheThatIsChangedIsFoundAndWhoHeldItNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.factory.DetectMutation(time.Second)
		w.add(t, "web-1")
		w.add(t, "web-2")
		informer := cache.Informer[*corev1.Pod](w.factory)
		defer w.run(t)()
		for _, name := range []string{"web-1", "web-2"} {
			o, err := informer.Get(object.Key{Namespace: "team-a", Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if name == "web-2" {
				o.Labels = map[string]string{"mine": "yes"}
			}
		}
		lines := w.factory.Mutated()
		if len(lines) != 1 || !strings.Contains(lines[0], "pods team-a/web-2 at resourceVersion") ||
			!strings.Contains(lines[0], "TestAnObjectOfTheCacheThatIsChangedIsFoundAndWhoHeldItNamed") || !strings.Contains(lines[0], "factory_test.go") {
			t.Errorf("found %q", lines)
		}
		o, err := informer.Get(object.Key{Namespace: "team-a", Name: "web-1"})
		if err != nil {
			t.Fatal(err)
		}
		o.Spec.NodeName = "elsewhere"
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if text := w.log.String(); !strings.Contains(text, "an object of the cache was changed") || !strings.Contains(text, "team-a/web-1") {
			t.Errorf("logged: %s", text)
		}
	})
}

func TestTheStatusPageSaysWhatThereIsAndWhatWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 3 {
			w.add(t, fmt.Sprint("web-", i))
		}
		informer := cache.Informer[*corev1.Pod](w.factory)
		blocked := make(chan struct{})
		if _, err := informer.AddHandler(func(cache.Event[*corev1.Pod]) { <-blocked }, cache.HandlerOptions{Name: "slow-one"}); err != nil {
			t.Fatal(err)
		}
		stop := w.run(t)
		time.Sleep(5 * time.Second)
		var page bytes.Buffer
		if err := w.factory.WriteStatus(&page); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"KIND OBJECTS RAW STORED VERSION BEHIND HEARD EVENTS EVENTS/S STATE",
			"current",
			"pods listed 1 times: the first state",
			"HANDLER KIND WAITING HANDLED MERGED PANICS SPENT BUSY HELD UP",
			"slow-one pods 2 0 0 0 0s 5s 0s",
		} {
			if !strings.Contains(strings.Join(strings.Fields(page.String()), " "), line) {
				t.Errorf("the page does not say %q:\n%s", line, page.String())
			}
		}
		close(blocked)
		stop()
	})
}
