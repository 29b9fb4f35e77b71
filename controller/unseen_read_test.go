// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// between answers some requests in place of a server.
type between struct {
	next   http.RoundTripper
	answer func(*http.Request) *http.Response // nil: the server's
}

func (b *between) RoundTrip(r *http.Request) (*http.Response, error) {
	if answer := b.answer(r); answer != nil {
		return answer, nil
	}
	return b.next.RoundTrip(r)
}

// says is an answer.
func says(code int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

func getsOne(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods/child")
}

// loseCreate loses the answer of a create.
func (b *bubble) loseCreate() {
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	b.line.lose = func(r *http.Request) bool { return r.Method == http.MethodPost }
}

// A 404 about something else than the object says nothing of the object: here it was made.
func TestA404OfSomebodyElseDoesNotUndoAWriteWhoseAnswerWasLost(t *testing.T) {
	for name, body := range map[string][2]string{
		"of a proxy":                 {"text/html", "<html>404 Not Found</html>"},
		"of a server without a path": {"text/plain", "404 page not found\n"},
		"of a server without the kind": {"application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,
			"message":"the server could not find the requested resource","details":{}}`},
		"of the namespace": {"application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,
			"message":"namespaces \"ns\" not found","details":{"name":"ns","kind":"namespaces"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				var honest atomic.Bool
				lies := &between{next: b.line, answer: func(r *http.Request) *http.Response {
					if honest.Load() || !getsOne(r) {
						return nil
					}
					return says(http.StatusNotFound, body[0], body[1])
				}}
				asked, err := client.New(&rest.Config{Host: "http://in-memory", Transport: lies})
				if err != nil {
					t.Fatal(err)
				}
				saw := false
				w := b.writing(func(ctx context.Context, _ client.Typed[*corev1.Pod]) error {
					b.loseCreate()
					_, err := client.For[*corev1.Pod](asked).Create(ctx, pod("child"))
					return err
				}, func() { saw = names(b.pods)["child"] })
				defer w.stop()
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(w.runs) != 1 || len(w.Waiting()) != 1 {
					t.Fatalf("%d runs, waiting for %v; want the write to be looked up until the server says what became of it", len(w.runs), w.Waiting())
				}
				b.line.to().HoldWatches(false)
				honest.Store(true)
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(w.runs) < 2 || !saw || len(w.Waiting()) != 0 {
					t.Errorf("%d runs, the second saw the write: %v, waiting for %v", len(w.runs), saw, w.Waiting())
				}
			})
		})
	}
}

// Credentials that may write need not be allowed to get, nor to list.
func TestALostAnswerIsLookedUpWithoutTheRightToGet(t *testing.T) {
	for name, lacks := range map[string]func(*http.Request) bool{
		"get":          getsOne,
		"get and list": func(r *http.Request) bool { return r.Method == http.MethodGet },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				limited, err := client.New(&rest.Config{Host: "http://in-memory", Transport: &between{next: b.line, answer: func(r *http.Request) *http.Response {
					if !lacks(r) {
						return nil
					}
					return says(http.StatusForbidden, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
						"message":"pods \"child\" is forbidden: User \"me\" cannot get resource \"pods\" in API group \"\" in the namespace \"ns\""}`)
				}}})
				if err != nil {
					t.Fatal(err)
				}
				var lost bool
				w := b.writing(func(ctx context.Context, _ client.Typed[*corev1.Pod]) error {
					b.loseCreate()
					_, err := client.For[*corev1.Pod](limited).Create(ctx, pod("child"))
					lost = client.Unanswered(err)
					b.line.to().HoldWatches(false)
					return err
				}, func() {
					if !names(b.pods)["child"] {
						t.Error("the second run does not see what the first one made")
					}
				})
				defer w.stop()
				time.Sleep(10 * time.Second) // far less than the bound
				synctest.Wait()
				if !lost || len(w.runs) < 2 || len(w.Waiting()) != 0 {
					t.Errorf("the answer was lost: %v; %d runs, waiting for %v", lost, len(w.runs), w.Waiting())
				}
			})
		})
	}
}

// Two clusters have objects of the same kind and name; what is written to one is not to
// appear in the informers of the other.
func TestAWriteToAnotherClusterIsNotWaitedForInTheInformersOfThisOne(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		far := fakeapi.New().Serve(podsResource)
		for i := range 50 { // versions there are far ahead
			if err := far.Add(pod(string(rune('a'+i%26)) + strings.Repeat("x", i/26+1))); err != nil {
				t.Fatal(err)
			}
		}
		there, err := client.New(&rest.Config{Host: "http://elsewhere", Transport: far})
		if err != nil {
			t.Fatal(err)
		}
		w := b.writing(func(ctx context.Context, _ client.Typed[*corev1.Pod]) error {
			_, err := client.For[*corev1.Pod](there).Create(ctx, pod("child"))
			return err
		}, func() {})
		defer w.stop()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if w.failed != nil || len(w.runs) != 2 || len(w.Waiting()) != 0 {
			t.Errorf("%d runs, waiting for %v (%v)", len(w.runs), w.Waiting(), w.failed)
		}
		if !strings.Contains(b.log.String(), "writes to another server") {
			t.Errorf("the log says nothing of it:\n%s", b.log.String())
		}
	})
}

// In a controller with informers of both, the one of the cluster that was written to shows it.
func TestAWriteIsWaitedForInTheInformersOfItsCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		far := fakeapi.New().Serve(podsResource)
		there, err := client.New(&rest.Config{Host: "http://elsewhere", Transport: far})
		if err != nil {
			t.Fatal(err)
		}
		factory := cache.NewFactory(there, nil)
		farPods := cache.Informer[*corev1.Pod](factory)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- factory.Run(ctx) }()
		synctest.Wait()
		runs := 0
		c := controller.New("test", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
			if runs++; runs > 1 {
				if _, err := farPods.Get(key("child")); err != nil {
					t.Errorf("the second run: %v", err)
				}
				return controller.Result{}, nil
			}
			far.HoldWatches(true)
			_, err := client.For[*corev1.Pod](there).Create(ctx, pod("child"))
			return controller.Result{After: time.Nanosecond}, err
		}, controller.Reads(b.pods), controller.Reads(farPods), b.logger())
		c.Queue().Add(object.Key{Name: "it"})
		stop := b.start(c)
		time.Sleep(time.Minute)
		synctest.Wait()
		if runs != 1 || len(c.Waiting()) != 1 {
			t.Errorf("%d runs, waiting for %v", runs, c.Waiting())
		}
		far.HoldWatches(false)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if runs != 2 || len(c.Waiting()) != 0 {
			t.Errorf("once it is shown: %d runs, waiting for %v", runs, c.Waiting())
		}
		stop()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Whether a finalizer is gone, and whether a name is free, is not believed of a proxy.
func TestA404OfAProxyIsNoAnswerToApplierAndFinalizers(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: &between{next: b.line, answer: func(*http.Request) *http.Response {
			return says(http.StatusNotFound, "text/plain", "404 page not found")
		}}})
		if err != nil {
			t.Fatal(err)
		}
		final := pod("target")
		final.Finalizers = []string{"example.com/f"}
		if err := finalizer.Remove(t.Context(), client.For[*corev1.Pod](c), final, "example.com/f"); err == nil {
			t.Error("the finalizer is said to be removed")
		}
		owner := pod("parent")
		_, err = owned.NewApplier(b.writtenBy(c), "test").Apply(t.Context(), owner, pod("child"))
		if err == nil || !strings.Contains(err.Error(), "checking whether it exists") {
			t.Errorf("Apply believes that there is none: %v", err)
		}
	})
}
