// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
)

// breakingSource has a state, and answers each watch with one that breaks.
type breakingSource struct {
	scripted
	after func(n int64) []fakeEvent // what the nth watch sends; the last event breaks it
	asked atomic.Int64              // watches
	most  int64                     // more are not answered any more
}

func (s *breakingSource) watch(ctx context.Context, o client.WatchOptions) (stream, error) {
	if o.SendInitialEvents {
		w := watching(allSent("5"), failing(errNoConnection))
		w.ctx, w.before = ctx, o.BeforeRead
		return w, nil
	}
	n := s.asked.Add(1)
	if n > s.most {
		<-ctx.Done() // so that a loop without a pause ends: in a bubble time stands still in it
		return nil, ctx.Err()
	}
	w := watching(s.after(n)...)
	w.ctx, w.before = ctx, o.BeforeRead
	if len(s.after(n)) == 0 {
		close(w.events)
	}
	return w, nil
}

// Watches that are answered and broken right away are requested ever more seldom, also
// by informers that know of each other as those of a Factory do.
func TestAWatchThatBreaksIsRetriedAfterAPause(t *testing.T) {
	serverError := apierrors.NewInternalError(errors.New("broken"))
	for name, after := range map[string]func(int64) []fakeEvent{
		"at once":              func(int64) []fakeEvent { return []fakeEvent{failing(errNoConnection)} },
		"by an error event":    func(int64) []fakeEvent { return []fakeEvent{failing(serverError)} },
		"by a malformed event": func(int64) []fakeEvent { return []fakeEvent{failing(&undecodable{errors.New("bad")})} },
		"after an old event":   func(int64) []fakeEvent { return []fakeEvent{modified(pod("a", "3")), failing(errNoConnection)} },
		"after the same event": func(int64) []fakeEvent { return []fakeEvent{modified(pod("a", "5")), failing(errNoConnection)} },
		"and ends in order":    func(int64) []fakeEvent { return nil },
		"in turns":             func(n int64) []fakeEvent { return []fakeEvent{failing([]error{errNoConnection, serverError}[n%2])} },
		"after an event, always": func(n int64) []fakeEvent {
			return []fakeEvent{modified(pod("a", fmt.Sprint(n+5))), failing(errNoConnection)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const informers, most = 20, 2000
				var server pulse
				var sources []*breakingSource
				for range informers {
					source := &breakingSource{scripted: scripted{t: t}, after: after, most: most}
					informer := SharedInformer[*corev1.Pod]{informer: newInformer("pods", source, podContent(), slog.New(slog.DiscardHandler))}
					informer.informer.reflect.server = &server
					defer start(t, informer)()
					sources = append(sources, source)
				}
				time.Sleep(10 * time.Minute)
				for _, source := range sources {
					// With pauses up to 30 s, half of that on average, 40 in ten minutes.
					// Those that others wake for an event of theirs come more often.
					if n := source.asked.Load(); n > 250 {
						t.Fatalf("an informer watched %d times in ten minutes", n)
					}
				}
			})
		})
	}
}

// An informer that has lost the server is woken by another that has reached it, and by
// none that was only answered.
func TestOnlyAWatchThatHasProvenItselfWakesOthers(t *testing.T) {
	for name, c := range map[string]struct {
		events []fakeEvent
		wakes  time.Duration // when; 0: never
	}{
		"an answer that breaks":  {events: []fakeEvent{failing(errNoConnection)}},
		"an event":               {events: []fakeEvent{added(pod("a", "6"))}, wakes: 1},
		"a bookmark":             {events: []fakeEvent{bookmark("6")}, wakes: 1},
		"a second without any":   {wakes: time.Second},
		"an event of the past":   {events: []fakeEvent{added(pod("a", "4")), failing(errNoConnection)}},
		"an error event":         {events: []fakeEvent{failing(apierrors.NewInternalError(errors.New("broken")))}},
		"an object not readable": {events: []fakeEvent{failing(&undecodable{errors.New("bad")})}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var server pulse
				_, informer := newTestInformer(t, watching(allSent("5"), failing(errNoConnection)), watching(c.events...))
				informer.informer.reflect.server = &server
				informer.informer.reflect.backoff.random = func() float64 { return 0.5 }
				defer start(t, informer)()
				<-informer.Synced()
				synctest.Wait() // in the pause before the second watch
				woken := server.next()
				time.Sleep(backoffFirst / 2)
				synctest.Wait()
				select {
				case <-woken:
					if c.wakes != 1 {
						t.Error("woke others at once")
					}
					return
				default:
				}
				if c.wakes == 1 {
					t.Error("did not wake others")
				}
				time.Sleep(c.wakes)
				synctest.Wait()
				select {
				case <-woken:
					if c.wakes == 0 {
						t.Error("woke others")
					}
				default:
					if c.wakes != 0 {
						t.Error("did not wake others")
					}
				}
			})
		})
	}
}

func TestAnEarlyWakeLeavesTheServerAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan struct{})
		close(woken)
		b := backoff{random: func() float64 { return 1 }}
		for _, ms := range []int{100, 200, 400, 800, 1600, 3200, 3750, 3750} {
			floor := time.Duration(ms) * time.Millisecond
			began := time.Now()
			if err := b.wait(t.Context(), 0, woken); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited != floor {
				t.Errorf("woken after %s, want %s", waited, floor)
			}
		}
		began := time.Now()
		_ = b.wait(t.Context(), time.Minute, woken)
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("woken after %s, the server requested a minute", waited)
		}
	})
}

func TestAWatchThatLivedResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lived := watching()
		answers := []any{watching(allSent("5"), failing(errNoConnection))}
		for range 5 {
			answers = append(answers, errNoConnection)
		}
		next := watching()
		source, informer := newTestInformer(t, append(answers, lived, next)...)
		informer.informer.reflect.backoff.random = func() float64 { return 1 }
		defer start(t, informer)()
		time.Sleep(time.Minute) // 51 s of pauses
		synctest.Wait()
		lived.events <- bookmark("6")
		time.Sleep(backoffMost)
		lived.events <- failing(errNoConnection)
		synctest.Wait()
		asked := len(source.log())
		time.Sleep(backoffFirst)
		synctest.Wait()
		if len(source.log()) == asked {
			t.Error("the pause after a watch that lived is not the first one")
		}
	})
}

// One outage is one, and the next is another, whatever the server answers in between.
func TestAnOutageIsOverWhenAWatchWorksWhateverCameBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server pulse
		_, informer := newTestInformer(t, watching(allSent("5"), failing(errNoConnection)),
			errNoConnection, apierrors.NewTooManyRequests("starting", 1), errForbiddenList, watching(bookmark("6")))
		informer.informer.reflect.server = &server
		defer start(t, informer)()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !server.miss() {
			t.Error("the server still counts as away after a watch that works")
		}
	})
}

// What breaks a watch at one place again and again does not do so in a list.
func TestAnErrorEventThatRecursAtOnePlaceLeadsToARelist(t *testing.T) {
	broken := func() *fakeWatch { return watching(failing(apierrors.NewInternalError(errors.New("cannot decode")))) }
	synctest.Test(t, func(t *testing.T) {
		source, informer := newTestInformer(t, watching(allSent("5"), failing(errNoConnection)),
			broken(), broken(), broken(), watching(added(pod("a", "7")), allSent("8")))
		defer start(t, informer)()
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "asked", source.log(), "watch list from \"\"\nwatch from \"5\"\nwatch from \"5\"\nwatch from \"5\"\nwatch list from \"5\"")
		want(t, "store", contents(informer), "a@7")
	})
	t.Run("and not where the place moves", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			moves := func(version string) *fakeWatch {
				return watching(bookmark(version), failing(apierrors.NewInternalError(errors.New("overloaded"))))
			}
			source, informer := newTestInformer(t, watching(allSent("5"), failing(errNoConnection)),
				moves("6"), moves("7"), moves("8"), moves("9"), watching())
			defer start(t, informer)()
			time.Sleep(time.Hour)
			synctest.Wait()
			want(t, "asked", source.log(), "watch list from \"\"\nwatch from \"5\"\nwatch from \"6\"\nwatch from \"7\"\nwatch from \"8\"\nwatch from \"9\"")
		})
	})
}

// A real client reads from a real connection: what one informer, twenty of them, and one
// of a kind with a malformed event ask for while each of their watches breaks.
func TestBrokenWatchesOfARealClientAreCounted(t *testing.T) {
	const state = `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	for name, c := range map[string]struct {
		informers int
		event     string
	}{
		"one informer":             {1, ""},
		"twenty informers":         {20, ""},
		"a malformed event":        {1, "{\"type\":]\n"},
		"an event of another kind": {1, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"6"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var watches atomic.Int64
			// Raw HTTP: fakeapi sends no malformed event, and cuts no watch by itself.
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				watches.Add(1)
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Query().Get("sendInitialEvents") != "" {
					_, _ = io.WriteString(w, state+"\n")
				}
				_, _ = io.WriteString(w, c.event)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler) // breaks the connection
			}))
			defer server.Close()
			cl, err := client.New(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			factory := NewFactory(cl, slog.New(slog.DiscardHandler))
			for n := range c.informers {
				Informer[*corev1.ConfigMap](factory, WithLabels(fmt.Sprint("n=", n)))
			}
			ctx, cancel := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() { _ = factory.Run(ctx) })
			defer run.Wait()
			defer cancel()
			// A pause is a tenth of a second at least: at most 15 each in the time of
			// the test, and the first of all. Load makes them fewer.
			most := int64(c.informers * 20)
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end) && watches.Load() <= most; {
				time.Sleep(10 * time.Millisecond)
			}
			if n := watches.Load(); n > most {
				t.Errorf("%d watches within 1.5 s, want at most %d", n, most)
			}
		})
	}
}
