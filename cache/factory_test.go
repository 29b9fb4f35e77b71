// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var pods = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// world is a server in memory and a factory that reads from it, inside a bubble in
// which no time passes unless somebody waits.
type world struct {
	server  *fakeapi.Resource
	factory *cache.Factory
	log     *bytes.Buffer
}

// inWorld runs a test. The bubble fails if a goroutine is left when it ends.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{server: fakeapi.New().Serve(pods), log: new(bytes.Buffer)}
		c, err := client.New(w.server.Config())
		if err != nil {
			t.Fatal(err)
		}
		w.factory = cache.NewFactory(c, slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
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
			"once more":             cache.Informer[*corev1.Pod](w.factory).Handle() == first.Handle(),
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
		if text := w.log.String(); strings.Count(text, "two informers cache the same kind") != 2 || !strings.Contains(text, `one="in team-a" other="all, whole"`) {
			t.Errorf("logged: %s", text)
		}
		cache.Informer[*unstructured.Unstructured](w.factory, cache.OfKind(corev1.SchemeGroupVersion.WithKind("Pod")))
		if text := w.log.String(); !strings.Contains(text, `one="all, whole" other="all, whole, as unstructured.Unstructured"`) {
			t.Errorf("logged: %s", text)
		}
	})
}

func TestAServerThatPutsOffSaysSoAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Unavailable(30) })
		informer := cache.Informer[*corev1.Pod](w.factory)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.factory.Run(ctx) }()
		time.Sleep(time.Second)
		if err := informer.Trouble(); err == nil || !strings.Contains(err.Error(), "not now") {
			t.Errorf("trouble: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// goroutines returns how many there are in the bubble, once all of them wait.
// [runtime.NumGoroutine] counts others too, and one for a moment after its end.
func goroutines() int {
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
}

func TestTheLastReferenceStopsAnInformerAndNothingOfItIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-1")
		defer w.run(t)()
		before := goroutines()
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
		if after := goroutines(); after != before {
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
		if o != nil && (o.Kind != "Pod" || o.APIVersion != "v1") {
			t.Errorf("kind %q of %q, want those that an informer of metadata has", o.Kind, o.APIVersion)
		}
		if n := len(w.factory.Status()); n != 1 {
			t.Errorf("%d informers for one kind", n)
		}
	})
}

func TestATransformThatFailsLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-1")
		var calls atomic.Int64
		var failing atomic.Bool
		informer := cache.Informer[*corev1.Pod](w.factory, cache.Transform(func(p *corev1.Pod) (*corev1.Pod, error) {
			calls.Add(1)
			if failing.Load() && p.Name == "web-2" {
				return nil, errors.New("cannot")
			}
			if failing.Load() && p.Name == "web-3" {
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
		if n := calls.Load(); n != 1 {
			t.Errorf("the transform was called %d times for one object", n)
		}
		failing.Store(true)
		w.add(t, "web-2")
		if err := informer.Trouble(); err == nil || !strings.Contains(err.Error(), "cannot") {
			t.Errorf("trouble: %v", err)
		}
		w.add(t, "web-3")
		time.Sleep(time.Hour)
		synctest.Wait()
		if text := w.log.String(); strings.Count(text, "an object cannot be used") == 0 || strings.Count(text, "\n") > 20 {
			t.Errorf("logged in an hour: %s", text)
		}
		failing.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := informer.Snapshot().Len(); n != 3 || informer.Trouble() != nil {
			t.Errorf("%d objects when the transform works again, trouble %v", n, informer.Trouble())
		}
	})
}

// What is sent is transformed as it comes, by list and by watch, and what the cache
// tells of its own accord is not transformed again.
func TestATransformRunsOnceForEachObjectThatArrives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-1")
		w.add(t, "web-2")
		line := &cuttable{to: w.server}
		c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: line})
		if err != nil {
			t.Fatal(err)
		}
		w.factory = cache.NewFactory(c, nil)
		var calls, events notes
		informer := cache.Informer[*corev1.Pod](w.factory, cache.Transform(func(p *corev1.Pod) (*corev1.Pod, error) {
			calls.add(p.Name)
			p.Labels = map[string]string{"transformed": "yes"}
			return p, nil
		}))
		var expired atomic.Bool
		w.server.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "watch" && q.HTTP.URL.Query().Get("sendInitialEvents") != "" {
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid}
			}
			if q.Verb == "watch" && expired.CompareAndSwap(true, false) {
				// Nobody watches now.
				if err := client.For[*corev1.Pod](c).Delete(q.HTTP.Context(), object.Key{Namespace: "team-a", Name: "web-1"}); err != nil {
					t.Error(err)
				}
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}
			}
			return nil
		})
		_, err = informer.AddHandler(func(e cache.Event[*corev1.Pod]) {
			if !e.Item().Meta().Labels.Has("transformed") {
				t.Errorf("%s %s: not transformed", e.Kind, e.Key().Name)
			}
			events.add(fmt.Sprint(e.Kind, " ", e.Key().Name))
		}, cache.HandlerOptions{Resync: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer w.run(t)()
		want(t, "transformed by list", calls.take(), "web-1 web-2")
		w.add(t, "web-3")
		want(t, "transformed by watch", calls.take(), "web-3")
		events.take()
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		want(t, "told by resync", events.take(), "Resync web-1 Resync web-2 Resync web-3")
		want(t, "transformed by resync", calls.take(), "")
		// What is gone from a list is delivered as deleted, and was transformed when it came.
		expired.Store(true)
		line.cut()
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "told by a new list", events.take(), "Deleted web-1")
		want(t, "transformed by a new list", calls.take(), "web-2 web-3")
	})
}

// notes is what functions of a test note from goroutines that are not the test's.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(note string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, note)
}

// take returns the notes in alphabetical order, and forgets them.
func (n *notes) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.all)
	text := strings.Join(n.all, " ")
	n.all = nil
	return text
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// cuttable is a line to a server of which a test can cut the watches.
type cuttable struct {
	to http.RoundTripper

	mu      sync.Mutex
	watches []context.CancelFunc
}

func (l *cuttable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "true" {
		return l.to.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	l.mu.Lock()
	l.watches = append(l.watches, cancel)
	l.mu.Unlock()
	return l.to.RoundTrip(r.WithContext(ctx))
}

func (l *cuttable) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cancel := range l.watches {
		cancel()
	}
	l.watches = nil
}

func TestAReleasedInformerThatNeverRanIsStopped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		early := cache.Informer[*corev1.Pod](w.factory)
		early.Release()
		stop := w.run(t)
		if err := early.WaitForSync(t.Context()); err == nil || !strings.Contains(err.Error(), "has stopped") {
			t.Errorf("released before the factory ran: %v", err)
		}
		if _, err := early.AddHandler(func(cache.Event[*corev1.Pod]) {}, cache.HandlerOptions{}); err == nil {
			t.Error("a handler was added to it")
		}
		stop()
		late := cache.Informer[*corev1.Pod](w.factory)
		late.Release()
		if err := late.WaitForSync(t.Context()); err == nil || !strings.Contains(err.Error(), "has stopped") {
			t.Errorf("released after the factory ran: %v", err)
		}
	})
}

func TestAFactoryRunsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		defer w.run(t)()
		if err := w.factory.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has been run before") {
			t.Errorf("the second run: %v", err)
		}
	})
}

// A server that answers with something else than a list of the kind has said nothing
// of its objects, least of all that there are none.
func TestWhatIsNoListIsNotAnEmptyOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-1")
		line := &answering{to: w.server}
		c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: line})
		if err != nil {
			t.Fatal(err)
		}
		w.factory = cache.NewFactory(c, slog.New(slog.NewTextHandler(w.log, nil)))
		informer := cache.Informer[*corev1.Pod](w.factory)
		line.say(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"rows":[]}`)
		defer w.run(t)()
		time.Sleep(time.Minute)
		if err := informer.Trouble(); err == nil || !strings.Contains(err.Error(), `want a list of Pod, have a "Table"`) || informer.Snapshot().Version() != "" {
			t.Errorf("trouble %v, version %q", err, informer.Snapshot().Version())
		}
		line.say("")
		time.Sleep(time.Minute)
		synctest.Wait()
		if informer.Trouble() != nil || informer.Snapshot().Len() != 1 {
			t.Errorf("trouble %v, %d objects", informer.Trouble(), informer.Snapshot().Len())
		}
	})
}

// answering is a line to a server. It refuses watch lists, and answers lists with the text
// that a test sets: one that fakeapi would never send.
type answering struct {
	to http.RoundTripper

	mu   sync.Mutex
	list string
}

func (l *answering) say(list string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = list
}

func (l *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	text, code := l.list, http.StatusOK
	l.mu.Unlock()
	switch query := r.URL.Query(); {
	case query.Get("sendInitialEvents") != "":
		text, code = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity
	case query.Get("watch") != "" || text == "" || !strings.HasSuffix(r.URL.Path, "/pods"):
		return l.to.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(text)),
	}, nil
}

// What a watch sends that is no object of the kind is reported, and the state read
// anew: what it stood for is not known.
func TestEventsOfSomethingElseDoNotMoveTheVersion(t *testing.T) {
	for name, event := range map[string]string{
		"another kind":    `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","resourceVersion":"90"}}}`,
		"a table":         `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"90"},"rows":[]}}`,
		"an unknown type": `{"type":"MOVED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","resourceVersion":"90"}}}`,
		"no name":         `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"90"}}}`,
		"a wrong label":   `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","resourceVersion":"90","labels":{"a":1}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add(t, "web-1")
				line := &interjecting{to: w.server, event: event}
				c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: line})
				if err != nil {
					t.Fatal(err)
				}
				w.factory = cache.NewFactory(c, slog.New(slog.NewTextHandler(w.log, nil)))
				informer := cache.Informer[*corev1.Pod](w.factory)
				defer w.run(t)()
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := informer.Snapshot(); s.Version() != "2" || s.Len() != 1 || informer.Trouble() != nil {
					t.Errorf("%d objects at version %s, trouble %v", s.Len(), s.Version(), informer.Trouble())
				}
				if n := informer.Handle().Status().Relists["an object cannot be used"]; n != 1 {
					t.Errorf("the state was read %d times for it", n)
				}
				if !strings.Contains(w.log.String(), "an object cannot be used") {
					t.Errorf("logged: %s", w.log)
				}
			})
		})
	}
}

// interjecting is a line to a server. It puts an event that fakeapi would never send into the
// first watch, behind the initial state.
type interjecting struct {
	to    http.RoundTripper
	event string
	once  sync.Once
}

func (l *interjecting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.to.RoundTrip(r)
	if err != nil || r.URL.Query().Get("watch") != "true" {
		return response, err
	}
	l.once.Do(func() {
		body := bufio.NewReader(response.Body)
		var first bytes.Buffer
		for !strings.Contains(first.String(), "initial-events-end") {
			text, err := body.ReadString('\n')
			if err != nil {
				break
			}
			first.WriteString(text)
		}
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&first, strings.NewReader(l.event+"\n"), body), response.Body}
	})
	return response, nil
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
		w.factory.Status() // the lock of which orders the change before the next look
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

// Most of the informers of a process with many of them, one for each namespace or each cluster, see
// no change for minutes.
func TestAHandlerWithoutEventsHasNoGoroutine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "web-0")
		informer := cache.Informer[*corev1.Pod](w.factory)
		var heard, resyncs atomic.Int64
		count := func(e cache.Event[*corev1.Pod]) {
			if e.Kind == cache.Resync {
				resyncs.Add(1)
			} else {
				heard.Add(1)
			}
		}
		handler, err := informer.AddHandler(count, cache.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := informer.AddHandler(count, cache.HandlerOptions{Resync: time.Minute}); err != nil {
			t.Fatal(err)
		}
		stop := w.run(t)
		first := goroutines()
		time.Sleep(30 * time.Second)
		if n := goroutines(); n != first-2 {
			t.Errorf("%d goroutines, and %d while there was work; want 2 less", n, first)
		}
		w.add(t, "web-1")
		if n := heard.Load(); n != 4 {
			t.Errorf("the handlers have heard %d times, want 4", n)
		}
		time.Sleep(5*time.Minute + time.Second)
		if n := resyncs.Load(); n != 10 {
			t.Errorf("%d events of resyncs, want 10", n)
		}
		handler.Remove()
		<-handler.Ended()
		w.add(t, "web-2")
		if n := heard.Load(); n != 5 {
			t.Errorf("after one handler was removed they have heard %d times, want 5", n)
		}
		time.Sleep(30 * time.Second)
		stop()
		time.Sleep(time.Hour)
		if n := resyncs.Load(); n > 13 {
			t.Errorf("%d events of resyncs, and the informer has ended", n)
		}
	})
}
