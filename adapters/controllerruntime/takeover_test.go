// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
)

// The watch of a metadata view may be slow for as long as the cache runs: its informer and that of the typed
// view that came later then never have the same state. After a hundred tries its users get the difference.
func TestAViewWhoseWatchIsBehindMovesByADifference(t *testing.T) {
	inWorldOfSlowWatches(t, func(t *testing.T, w *world, slow *slowWatches) {
		for _, name := range []string{"a", "b", "stays"} {
			w.pod(t, "team-a", name)
		}
		defer w.start(t)()
		informer, err := w.cache.GetInformer(t.Context(), metadataOf(podKind))
		if err != nil {
			t.Fatal(err)
		}
		var got events
		if _, err := informer.AddEventHandler(&got); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got.was()
		slow.hold(ofMetadata)
		w.pod(t, "team-a", "a", labelled("app", "web"))
		w.removePod("team-a", "b")
		w.pod(t, "team-a", "c")
		if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(controllerruntime.FactoryOf(w.cache).Status()); n != 2 || got.was() != "" {
			t.Errorf("after a minute the kind has %d informers, and the handler got %v", n, got.calls)
		}
		time.Sleep(2 * time.Minute) // a hundred tries, of which most are a second apart
		synctest.Wait()
		if n := len(controllerruntime.FactoryOf(w.cache).Status()); n != 1 {
			t.Errorf("after three minutes the kind has %d informers", n)
		}
		if calls := sortedWords(got.was()); calls != "add c, delete tombstone team-a/b, update a" {
			t.Errorf("the handler got %q", calls)
		}
		slow.release()
		w.pod(t, "team-a", "d")
		w.pod(t, "team-a", "a", labelled("app", "db"))
		if calls := got.was(); calls != "add d, update a" {
			t.Errorf("after the view has moved, the handler got %q", calls)
		}
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
		if err := w.cache.List(t.Context(), &list, crclient.MatchingLabels{"app": "db"}); err != nil || len(list.Items) != 1 {
			t.Errorf("the view has %d Pods, %v", len(list.Items), err)
		}
	})
}

// A view never goes back: while the later informer is behind, the view stays, however often it tries.
func TestAViewDoesNotMoveToAnOlderState(t *testing.T) {
	inWorldOfSlowWatches(t, func(t *testing.T, w *world, slow *slowWatches) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		informer, err := w.cache.GetInformer(t.Context(), metadataOf(podKind))
		if err != nil {
			t.Fatal(err)
		}
		var got events
		if _, err := informer.AddEventHandler(&got); err != nil {
			t.Fatal(err)
		}
		slow.hold(ofObjects)
		if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}, crcache.BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
		w.pod(t, "team-a", "b")
		time.Sleep(10 * time.Minute)
		w.pod(t, "team-a", "c")
		if n, calls := len(controllerruntime.FactoryOf(w.cache).Status()), got.was(); n != 2 || calls != "initial a, add b, add c" {
			t.Errorf("the kind has %d informers, and the handler got %q", n, calls)
		}
		slow.release()
		time.Sleep(time.Minute)
		w.pod(t, "team-a", "d")
		if n, calls := len(controllerruntime.FactoryOf(w.cache).Status()), got.was(); n != 1 || calls != "add d" {
			t.Errorf("at the end the kind has %d informers, and the handler got %q", n, calls)
		}
	})
}

// slowWatches is a transport whose watches bring nothing while they are held.
type slowWatches struct {
	next http.RoundTripper

	mu   sync.Mutex
	held func(*http.Request) bool // nil: none is
	open chan struct{}            // is closed when no watch is held any more
}

func inWorldOfSlowWatches(t *testing.T, test func(t *testing.T, w *world, slow *slowWatches)) {
	slow := new(slowWatches)
	inWorldWith(t, func(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			slow.next = next
			return slow
		})
		return controllerruntime.NewCache(config, o)
	}, func(t *testing.T, w *world) { test(t, w, slow) })
}

func ofMetadata(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func ofObjects(r *http.Request) bool { return !ofMetadata(r) }

func (s *slowWatches) hold(which func(*http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.open = which, make(chan struct{})
}

func (s *slowWatches) release() {
	s.mu.Lock()
	s.held = nil
	close(s.open)
	s.mu.Unlock()
	synctest.Wait()
}

// wait returns when the watch of a request is not held.
func (s *slowWatches) wait(r *http.Request) {
	s.mu.Lock()
	held, open := s.held != nil && s.held(r), s.open
	s.mu.Unlock()
	if !held {
		return
	}
	select {
	case <-open:
	case <-r.Context().Done():
	}
}

// RoundTrip implements http.RoundTripper.
func (s *slowWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") == "true" {
		answer.Body = slowBody{answer.Body, func() { s.wait(r) }}
	}
	return answer, err
}

type slowBody struct {
	io.ReadCloser
	wait func()
}

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.wait() // what was read arrives late
	return n, err
}
