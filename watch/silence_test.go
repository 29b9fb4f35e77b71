// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// silent is a transport that accepts some requests and does not answer them, as a server does
// that is overloaded: neither the headers, nor anything of the body.
type silent struct {
	next    http.RoundTripper
	headers func(*http.Request) bool
	body    func(*http.Request) bool
}

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.headers != nil && s.headers(r) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	answer, err := s.next.RoundTrip(r)
	if err == nil && s.body != nil && s.body(r) {
		_ = answer.Body.Close()
		answer.Body = io.NopCloser(mute{r.Context()})
	}
	return answer, err
}

// mute is a body of which nothing arrives.
type mute struct{ ctx context.Context }

func (q mute) Read([]byte) (int, error) {
	<-q.ctx.Done()
	return 0, context.Cause(q.ctx)
}

// diary is a log that can be searched.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(text)
}

func (d *diary) has(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Contains(d.text.String(), text)
}

// bubble is a host with a server in memory, in a bubble of synctest.
type bubble struct {
	host
	diary

	t *testing.T
}

func newBubble(t *testing.T, api *fakeapi.Server, s silent) *bubble {
	t.Helper()
	config := api.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { s.next = next; return s })
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	b := &bubble{t: t}
	log := slog.New(slog.NewTextHandler(b, nil))
	b.host = host{c, cache.NewFactory(c, log), log}
	return b
}

// run runs a watch for some time, and returns the error of Run.
func (b *bubble) run(o Options, during func()) error {
	b.t.Helper()
	w, err := New(b, o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	var result error
	running.Go(func() { _ = b.informers.Run(ctx) })
	running.Go(func() { result = w.Run(ctx) })
	during()
	cancel()
	running.Wait()
	return result
}

func firsts(n int, are func(*http.Request) bool) func(*http.Request) bool {
	var mu sync.Mutex
	return func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if !are(r) || n == 0 {
			return false
		}
		n--
		return true
	}
}

func serveMaps(t *testing.T) (*fakeapi.Server, *fakeapi.Resource) {
	t.Helper()
	api := fakeapi.New()
	maps := api.Serve(configMaps)
	if err := maps.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices"}}); err != nil {
		t.Fatal(err)
	}
	return api, maps
}

// A server that does not answer the first question, which kinds it serves, does not stop the
// watch for ever, nor silently.
func TestADiscoveryWithoutAnswerIsLoggedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		b := newBubble(t, api, silent{headers: firsts(1, func(r *http.Request) bool { return r.URL.Path == "/apis" })})
		var told book
		err := b.run(Options{Kinds: []string{"configmaps"}, Tell: told.tell}, func() {
			time.Sleep(discovery.Patience + time.Second)
			synctest.Wait()
			if !b.has("cannot find out which kinds there are") {
				t.Error("the log does not say that the server gives no answer")
			}
			if err := maps.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		})
		if got := told.lines(); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "created configmaps new") {
			t.Errorf("told %q, %v", got, err)
		}
	})
}

// With Once there is an end to it.
func TestADiscoveryWithoutAnswerIsAnErrorForOneRun(t *testing.T) {
	j, _, err := journal.Open(filepath.Join(t.TempDir(), "cursor"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	synctest.Test(t, func(t *testing.T) {
		api, _ := serveMaps(t)
		b := newBubble(t, api, silent{headers: func(r *http.Request) bool { return r.URL.Path == "/apis" }})
		err := b.run(Options{Kinds: []string{"configmaps"}, Journal: j, Route: toBook, Once: true}, func() {
			time.Sleep(2*discovery.Patience + oncePatience)
			synctest.Wait()
		})
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v, want that the time ran out", err)
		}
	})
}

// A server that accepts a watch and sends nothing is one that the log names, with the kind.
func TestAFirstListThatDoesNotComeIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _ := serveMaps(t)
		b := newBubble(t, api, silent{body: func(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") != "" }})
		var told book
		_ = b.run(Options{Kinds: []string{"configmaps"}, Tell: told.tell}, func() {
			time.Sleep(listQuiet + time.Second)
			synctest.Wait()
			if !b.has("the first list of a kind has not ended yet") || !b.has("kind=configmaps") {
				t.Error("the log does not say what the watch waits for")
			}
		})
	})
}

// A replay that comes to nothing is tried for half a minute, and the log says so before that is over.
func TestAReplayThatComesToNothingIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := replaying(t)
		var log diary
		f.watch.log = slog.New(slog.NewTextHandler(&log, nil))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if f.replay(ctx, "100", "104") || time.Since(began) != 2*time.Second {
			t.Errorf("the replay ended after %v", time.Since(began))
		}
		if !log.has("reading the steps since the last run again") {
			t.Error("the log does not say that the server sends no steps")
		}
	})
}

// A publisher that is never without work commits all the same, and its settler releases what is
// due: it does not take more at once than it commits together.
func TestThePublisherTakesABoundedNumberAtOnce(t *testing.T) {
	d := newDesk(t, 0, Options{Window: time.Hour})
	d.in = make(chan report, 3*batch)
	for range cap(d.in) {
		d.version++
		e := &event.Event{ID: "1", Time: d.now, Verb: event.Updated, Kind: d.f.kind, Key: object.Key{Name: "a"}, Classes: []event.Class{event.Content}}
		d.in <- report{follower: d.f, event: e, change: observe.Change{Verb: event.Updated}}
	}
	d.takeMore()
	if left := len(d.in); left < batch {
		t.Errorf("of %d events %d are left, want that at most %d are taken at once", cap(d.in), left, batch)
	}
}
