// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// remembers waits until a journal knows a selection, and returns up to which version.
func remembers(t *testing.T, n *notes, selection string) (version object.Version) {
	t.Helper()
	controlplanetest.Eventually(t, "the cursor is written", func() bool {
		v, known := n.Selection(selection)
		version = object.Version(v)
		return known && v != ""
	})
	return version
}

// What is excluded this time is there all the same, and what happens to it meanwhile is
// told when it is excluded no more.
func TestWhatIsExcludedIsNotToldAsDeleted(t *testing.T) {
	s := newScene(t)
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	options := Options{Kinds: []string{"configmaps"}, Labels: "scene=" + s.namespace, Journal: n.Journal, Route: toBook}
	label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"scene": s.namespace}}}
	s.create("a")
	s.patch("a", label)
	p, w := watching(t, s.Config, options)
	begun(t, w, 1)
	remembers(t, n, w.all()[0].name)
	p.Stop()

	excluding := options
	excluding.ExcludeNamespaces = []string{s.namespace}
	p, w = watching(t, s.Config, excluding)
	begun(t, w, 1)
	s.set("a", "1")
	p.Stop()
	if lines := n.lines(); len(lines) != 0 {
		t.Errorf("told of what is excluded: %q", lines)
	}

	_, w = watching(t, s.Config, options)
	begun(t, w, 1)
	want(t, n.lines, "updated configmaps a [content], missed")
}

// A server that was set back to a backup gives out versions anew. Its state is compared, and
// the cursor goes back with it: later steps are told again one by one.
func TestTheCursorGoesBackWithAServerThatWasSetBack(t *testing.T) {
	const future = "99999999999"
	s := newScene(t)
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	options := Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook}
	s.create("a")
	s.create("gone")
	p, w := watching(t, s.Config, options)
	begun(t, w, 1)
	selection := w.all()[0].name
	remembers(t, n, selection)
	p.Stop()
	s.set("a", "1")
	s.delete("gone")
	var b journal.Batch
	b.Version(selection, future)
	if err := n.Commit(&b); err != nil {
		t.Fatal(err)
	}

	p, w = watching(t, s.Config, options)
	begun(t, w, 1)
	told := []string{"updated configmaps a [content], missed", "deleted configmaps gone, missed, stale"}
	want(t, n.lines, told...)
	controlplanetest.Eventually(t, "the cursor is back", func() bool {
		version, known := n.Selection(selection)
		return known && version != "" && version != future
	})
	p.Stop()
	s.create("brief")
	s.delete("brief")
	_, w = watching(t, s.Config, options)
	begun(t, w, 1)
	want(t, n.lines, append(told, "created configmaps brief, missed", "deleted configmaps brief, missed")...)
}

// The same while the watch runs: the informer goes back to an older version.
func TestTheCursorGoesBackWithTheInformer(t *testing.T) {
	s := newScene(t)
	s.create("a")
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	p := managertest.Run(t, s.Config)
	w, err := New(p.Manager, Options{Kinds: []string{"configmaps"}, Journal: n.Journal, Route: toBook})
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{watch: w, kind: event.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}, leave: func() {}}
	f.informer = cache.Informer[anyObject](p.InformerFactory(), cache.OfKind(configMaps.GroupVersionKind()), cache.InNamespace(s.namespace))
	defer f.informer.Release()
	if !f.awaitState(t.Context()) {
		t.Fatal("there is no state")
	}
	registration, ok := f.listen(t.Context())
	if !ok {
		t.Fatal("the informer takes no handler")
	}
	defer registration.Remove()
	<-f.steps
	<-registration.Synced()
	f.begun.Store(true)
	f.last = "99999999999"
	f.moveOn(t.Context(), registration)
	f.moveOn(t.Context(), registration)
	select {
	case what := <-w.publisher.in: // it has room for many
		if what.version.IsZero() || what.version.AtLeast("99999999999") {
			t.Errorf("the cursor moves to %s", what.version)
		}
	default:
		t.Fatal("the cursor stays where nothing is yet")
	}
}

var configMaps = object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}

// host is a Host without a manager.
type host struct {
	client    *client.Client
	informers *cache.Factory
	log       *slog.Logger
}

func (h host) Client() *client.Client          { return h.client }
func (h host) InformerFactory() *cache.Factory { return h.informers }
func (h host) Logger() *slog.Logger            { return h.log }

// replaying is a follower of ConfigMaps, whose server sends these events to each
// watch; each is "ADDED a 101 value".
func replaying(t *testing.T, events ...string) (*follower, *book) {
	t.Helper()
	return replayingFrom(t, func(string) []string { return events })
}

// replayingFrom is as replaying, with events by the version that a watch begins at.
func replayingFrom(t *testing.T, events func(from string) []string) (*follower, *book) {
	t.Helper()
	c, err := client.New(&rest.Config{Host: "http://server", Transport: answers(func(r *http.Request) string {
		var body strings.Builder
		for _, text := range events(r.URL.Query().Get("resourceVersion")) {
			var kind, name, version, value string
			if _, err := fmt.Sscan(text, &kind, &name, &version, &value); err != nil {
				t.Error(err)
			}
			o := tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"namespace": "shop", "name": name, "uid": "uid-" + name, "resourceVersion": version}, "data": tree{"x": value}}
			if err := json.NewEncoder(&body).Encode(tree{"type": kind, "object": o}); err != nil {
				t.Error(err)
			}
		}
		return body.String()
	})})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	w, err := New(host{c, cache.NewFactory(c, log), log}, Options{Kinds: []string{"configmaps"}, Journal: n.Journal, Route: toBook})
	if err != nil {
		t.Fatal(err)
	}
	w.publisher.in = make(chan report) // without a queue, as if it were full
	f := &follower{watch: w, name: "configmaps", resource: configMaps, kind: kindOf(configMaps)}
	f.observer = observe.New(observe.Options{Kind: f.kind})
	var b book
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case what := <-w.publisher.in:
				_ = b.tell(ctx, []*event.Event{what.event})
				time.Sleep(b.pause)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return f, &b
}

// answers is a server whose answers have arrived whole before they are read: raw bytes, since
// fakeapi sends a watch event by event.
type answers func(*http.Request) string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(a(r))),
	}, nil
}

// A commit waits for the disk and a queue for room: a replay may take longer than the server
// keeps a watch open. What has been read of the watch is told all the same.
func TestAReplayWaitsForWhatItTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := replaying(t, "ADDED a 101 x", "ADDED b 102 x", "ADDED c 103 x", "BOOKMARK - 104 -")
		b.pause = replayTurn + replayPatience
		if !f.replay(t.Context(), "100", "104") {
			t.Error("the replay says that it is not whole")
		}
		synctest.Wait()
		if told, want := b.lines(), []string{"created configmaps a, missed", "created configmaps b, missed", "created configmaps c, missed"}; !slices.Equal(told, want) {
			t.Errorf("told: %q, want %q", told, want)
		}
	})
}

// A replay ends where the informer is. What comes after is the informer's to tell: an object
// that only the replay knew could go without anybody's noticing.
func TestAReplayGoesAsFarAsTheInformerAndNoFurther(t *testing.T) {
	f, b := replaying(t, "ADDED a 101 x", "ADDED b 105 x", "DELETED b 107 x")
	if !f.replay(t.Context(), "100", "104") {
		t.Error("the replay says that it is not whole")
	}
	want(t, b.lines, "created configmaps a, missed")
	if f.last != "104" || len(f.replayed) != 1 {
		t.Errorf("the cursor is at %s, want 104; %d objects are replayed, want 1", f.last, len(f.replayed))
	}
}

// etcd makes all deletions of a lease at one version.
func TestAReplayTellsEachStepOfAVersion(t *testing.T) {
	f, b := replaying(t, "DELETED a 101 x", "DELETED b 101 x", "DELETED c 101 x")
	var known journal.Batch
	for _, name := range []string{"a", "b", "c"} {
		known.Seen(f.name, object.Key{Namespace: "shop", Name: name}, journal.Seen{UID: types.UID("uid-" + name), Version: "90"})
	}
	if err := f.watch.options.Journal.Commit(&known); err != nil {
		t.Fatal(err)
	}
	if !f.replay(t.Context(), "100", "101") {
		t.Error("the replay says that it is not whole")
	}
	want(t, b.lines, "deleted configmaps a, missed", "deleted configmaps b, missed", "deleted configmaps c, missed")
	if f.last != "100" {
		t.Errorf("the cursor is at %s, and the watch ended where there may be more at 101", f.last)
	}
}

func TestAReplayThatIsCutWithinAVersionBeginsBeforeItAndTellsNothingTwice(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	f, b := replayingFrom(t, func(from string) []string {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, from)
		all := []string{"ADDED a 101 x", "ADDED b 102 x", "ADDED c 102 x", "DELETED b 104 x", "BOOKMARK - 107 -"}
		switch len(asked) {
		case 1:
			return all[:2]
		case 2:
			return all[1:4]
		}
		return all[3:]
	})
	if !f.replay(t.Context(), "100", "106") {
		t.Error("the replay says that it is not whole")
	}
	want(t, b.lines, "created configmaps a, missed", "created configmaps b, missed", "created configmaps c, missed", "deleted configmaps b, missed")
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"100", "101", "102"}; !slices.Equal(asked, want) || f.last != "106" {
		t.Errorf("asked from %q, want %q; the cursor is at %s, want 106", asked, want, f.last)
	}
}

// The cursor of a kind stays behind its newest step, which comes again at the next start.
func TestADeletionThatWasToldIsNotToldAgain(t *testing.T) {
	f, b := replaying(t, "DELETED gone 101 x", "ADDED new 102 y", "BOOKMARK - 110 -")
	if !f.replay(t.Context(), "100", "105") {
		t.Error("the replay says that it is not whole")
	}
	want(t, b.lines, "created configmaps new, missed")
}

// What is stored of a kind is a version of which nothing can be missing.
func TestTheCursorIsAtAVersionThatIsComplete(t *testing.T) {
	f := &follower{last: "5"} // of the state at the start
	for _, step := range []struct{ version, cursor object.Version }{
		{"6", "5"}, {"7", "6"}, {"7", "6"}, {"7", "6"}, {"3", "6"}, {"9", "7"}, {"10", "9"},
	} {
		if f.reach(step.version); f.last != step.cursor {
			t.Errorf("after a step at %s the cursor is at %s, want %s", step.version, f.last, step.cursor)
		}
	}
	if f.complete("12"); f.last != "12" {
		t.Errorf("the cursor is at %s", f.last)
	}
	if f.reach("13"); f.last != "12" {
		t.Errorf("the cursor is at %s", f.last)
	}
}

// However many objects have changed, there is only so much to remember of a replay.
func TestAReplayRemembersSoMuch(t *testing.T) {
	var events []string
	for i := range replayContents + 2 {
		events = append(events, fmt.Sprintf("ADDED o%d %d x", i, 100_000+i))
	}
	last := fmt.Sprintf("o%d", replayContents+1)
	events = append(events, "MODIFIED o0 200000 y", "MODIFIED "+last+" 200001 y", "MODIFIED "+last+" 200002 y", "DELETED o1 200003 x", "MODIFIED "+last+" 200004 z", "MODIFIED "+last+" 200005 x", "MODIFIED o0 200006 z")
	f, b := replaying(t, events...)
	if !f.replay(t.Context(), "99999", "200006") {
		t.Error("the replay says that it is not whole")
	}
	want(t, func() []string { l := b.lines(); return l[min(len(l), replayContents+2):] },
		"updated configmaps o0 [content] replace data.x:x→y, missed",
		"updated configmaps "+last+" [content], missed",
		"updated configmaps "+last+" [heartbeats versions], missed",
		"deleted configmaps o1, missed",
		"updated configmaps "+last+" [content], missed",
		"updated configmaps "+last+" [content] replace data.x:z→x, missed",
		"updated configmaps o0 [content] replace data.x:y→z, missed",
	)
	kept := 0
	for _, done := range f.replayed {
		if done.content != nil {
			kept++
		}
	}
	if kept != replayContents || kept != f.contents {
		t.Errorf("the content of %d objects is kept and counted as %d, want %d", kept, f.contents, replayContents)
	}
}
