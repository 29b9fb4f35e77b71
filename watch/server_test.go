// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// book writes down what is told.
type book struct {
	pause time.Duration // after each event, where it is told by a goroutine of its own

	mu     sync.Mutex
	events []*event.Event
}

func (b *book) tell(_ context.Context, events []*event.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, events...)
	return nil
}

// lines are the events, each as "updated configmaps a (content): data.x 1 → 2, missed".
func (b *book) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return linesOf(b.events)
}

func linesOf(events []*event.Event) (lines []string) {
	for _, e := range events {
		line := fmt.Sprintf("%s %s %s", e.Verb, e.Kind, e.Key.Name)
		if e.Verb == event.Updated {
			line += fmt.Sprintf(" %v", e.Classes)
		}
		for _, f := range e.Fields {
			line += fmt.Sprintf(" %s %s:%v→%v", f.Op, f.Path, f.From, f.To)
		}
		if e.Missed {
			line += ", missed"
		}
		if e.Stale {
			line += ", stale"
		}
		if e.Merged > 1 {
			line += fmt.Sprintf(", merged %d", e.Merged)
		}
		lines = append(lines, line)
	}
	return lines
}

// watching runs a Watch as a process of its own.
func watching(t *testing.T, config *rest.Config, o Options) (*managertest.Process, *Watch) {
	t.Helper()
	var w *Watch
	p := managertest.Run(t, config, func(m *manager.Manager) (manager.Runnable, error) {
		var err error
		w, err = New(m, o)
		return w, err
	})
	return p, w
}

// begun waits until a Watch has seen everything that was there.
func begun(t *testing.T, w *Watch, followed int) {
	t.Helper()
	controlplanetest.Eventually(t, "everything that was there is seen", func() bool {
		all := w.all()
		return len(all) == followed && !slices.ContainsFunc(all, func(f *follower) bool { return !f.begun.Load() })
	})
}

// want waits until what is told is this, and nothing else.
func want(t *testing.T, lines func() []string, want ...string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("told:\n%s\nwant:\n%s", strings.Join(lines(), "\n"), strings.Join(want, "\n"))
		}
	}()
	controlplanetest.Eventually(t, "what is told is what happened", func() bool { return len(lines()) >= len(want) })
	if got := lines(); !slices.Equal(got, want) {
		t.Errorf("told %d lines, want %d", len(got), len(want))
	}
}

// scene is a namespace in which ConfigMaps change.
type scene struct {
	*controlplanetest.Cluster
	t         *testing.T
	namespace string
	maps      client.Typed[*corev1.ConfigMap]
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c := shared.Get(t)
	return &scene{Cluster: c, t: t, namespace: c.Namespace(t), maps: client.For[*corev1.ConfigMap](c.Client)}
}

func (s *scene) key(name string) object.Key { return object.Key{Namespace: s.namespace, Name: name} }

func (s *scene) create(name string, labels ...string) {
	s.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: map[string]string{"x": "0"}}
	for _, label := range labels {
		m.Labels = map[string]string{label: "yes"}
	}
	if _, err := s.maps.Create(s.t.Context(), m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) set(name, value string) {
	s.patch(name, map[string]any{"data": map[string]any{"x": value}})
}

func (s *scene) patch(name string, change map[string]any) {
	s.t.Helper()
	patch, err := client.MergePatch(change)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.maps.Patch(s.t.Context(), s.key(name), patch); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) delete(name string) {
	s.t.Helper()
	if err := s.maps.Delete(s.t.Context(), s.key(name)); err != nil {
		s.t.Fatal(err)
	}
}

func TestEachStepOfAnObjectIsTold(t *testing.T) {
	s := newScene(t)
	s.create("old")
	var b book
	_, w := watching(t, s.Config, Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Tell: b.tell})
	begun(t, w, 1)
	s.create("a")
	for i := range 20 {
		s.set("a", fmt.Sprint(i+1))
	}
	s.patch("a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "web"}}})
	s.delete("a")
	s.set("old", "1")
	lines := []string{"created configmaps a"}
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("updated configmaps a [content] replace data.x:%d→%d", i, i+1))
	}
	want(t, b.lines, append(lines, "updated configmaps a [metadata] add metadata.labels:<nil>→map[tier:web]", "deleted configmaps a", "updated configmaps old [content] replace data.x:0→1")...)
	if by := b.events[1].Authors; len(by) != 1 || by[0].Manager == "" || by[0].Operation != "Update" {
		t.Errorf("the author of the first change is %+v", by)
	}
	controlplanetest.Eventually(t, "all are counted, which comes after they are told", func() bool { return w.Status().Told >= 24 })
	if s := w.Status(); s.Seen != 24 || s.Told != 24 || s.Followed != 1 || len(s.Troubles) != 0 {
		t.Errorf("the status is %+v, want 24 changes", s)
	}
}

func TestWhatIsThereIsToldIfAsked(t *testing.T) {
	s := newScene(t)
	s.create("a")
	s.create("b")
	var b book
	watching(t, s.Config, Options{Kinds: []string{"cm"}, Namespaces: []string{s.namespace}, Existing: true, Tell: b.tell})
	want(t, func() []string { l := b.lines(); slices.Sort(l); return l }, "existing configmaps a", "existing configmaps b")
}

// notes is a journal whose only sink is read by a test.
type notes struct {
	*journal.Journal
	path string
	seen uint64
	all  []*event.Event
}

func open(t *testing.T, path string) *notes {
	t.Helper()
	j, damage, err := journal.Open(path, journal.Options{})
	if err != nil || damage != nil {
		t.Fatal(damage, err)
	}
	n := &notes{Journal: j, path: path}
	t.Cleanup(func() { _ = j.Close() })
	return n
}

func (n *notes) lines() []string {
	for {
		entries, err := n.Next("book", n.seen, 1000)
		if err != nil || len(entries) == 0 {
			return linesOf(n.all)
		}
		for _, entry := range entries {
			e, err := event.Decode(entry.Data)
			if err != nil {
				return []string{err.Error()}
			}
			n.all, n.seen = append(n.all, e), entry.Seq
		}
	}
}

func toBook(*event.Event) ([]string, error) { return []string{"book"}, nil }

// Every step that happened while nobody watched is told, as long as the server knows it.
func TestWhatHappenedMeanwhileIsToldStepByStep(t *testing.T) {
	s := newScene(t)
	path := filepath.Join(t.TempDir(), "cursor")
	options := func(n *notes) Options {
		return Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook}
	}
	for _, name := range []string{"stays", "changes", "goes", "renewed"} {
		s.create(name)
	}
	n := open(t, path)
	p, w := watching(t, s.Config, options(n))
	begun(t, w, 1)
	s.set("changes", "1")
	want(t, n.lines, "updated configmaps changes [content] replace data.x:0→1")
	controlplanetest.Eventually(t, "the cursor is written", func() bool { _, known := n.Selection(w.all()[0].name); return known })
	p.Kill()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	s.set("changes", "2")
	s.set("changes", "3")
	s.delete("goes")
	s.delete("renewed")
	s.create("renewed")
	s.create("new")
	s.create("brief")
	s.delete("brief")
	n = open(t, path)
	n.lines()
	n.all = nil
	_, w = watching(t, s.Config, options(n))
	missed := []string{
		"updated configmaps changes [content], missed",
		"updated configmaps changes [content] replace data.x:2→3, missed",
		"deleted configmaps goes, missed",
		"deleted configmaps renewed, missed",
		"created configmaps renewed, missed",
		"created configmaps new, missed",
		"created configmaps brief, missed",
		"deleted configmaps brief, missed",
	}
	want(t, n.lines, missed...)
	begun(t, w, 1)
	s.set("new", "1")
	want(t, n.lines, append(missed, "updated configmaps new [content] replace data.x:0→1")...)
}

// forgetful answers a watch from a version as a server does that has forgotten it.
type forgetful struct {
	next    http.RoundTripper
	version string
	asked   *atomic.Int64
}

func (f forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := r.URL.Query(); q.Get("watch") == "" || q.Get("resourceVersion") != f.version {
		return f.next.RoundTrip(r)
	}
	f.asked.Add(1)
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`
	return &http.Response{StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Where the server no longer knows the steps, or the file no longer since when, the
// difference is told.
func TestWhatHappenedLongAgoIsToldAsTheDifference(t *testing.T) {
	for name, version := range map[string]string{"the server has forgotten": "1", "the file has forgotten": ""} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			path := filepath.Join(t.TempDir(), "cursor")
			options := func(n *notes) Options {
				return Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook}
			}
			for _, name := range []string{"stays", "changes", "goes", "renewed"} {
				s.create(name)
			}
			n := open(t, path)
			p, w := watching(t, s.Config, options(n))
			begun(t, w, 1)
			selection := w.all()[0].name
			controlplanetest.Eventually(t, "the cursor is written", func() bool { _, known := n.Selection(selection); return known })
			p.Stop()
			s.set("changes", "2")
			s.set("changes", "3")
			s.delete("goes")
			s.delete("renewed")
			s.create("renewed")
			s.create("new")
			var b journal.Batch
			b.Version(selection, version)
			if err := n.Commit(&b); err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int64
			config := rest.CopyConfig(s.Config)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return forgetful{next, "1", &asked} })
			_, w = watching(t, config, options(n))
			begun(t, w, 1)
			want(t, func() []string { l := n.lines(); slices.Sort(l); return l },
				"created configmaps new, missed",
				"deleted configmaps goes, missed, stale",
				"replaced configmaps renewed, missed",
				"updated configmaps changes [content], missed",
			)
			if version != "" && asked.Load() == 0 {
				t.Error("the server was not asked for the steps")
			}
		})
	}
}

// RBAC that is refused for one kind of three holds up nobody.
func TestAKindThatMayNotBeReadHoldsUpNobody(t *testing.T) {
	s := newScene(t)
	s.create("a")
	var b book
	config := s.Restricted(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "serviceaccounts"}, Verbs: []string{"list", "watch"}},
	})
	_, w := watching(t, config, Options{Kinds: []string{"configmaps", "secrets", "serviceaccounts"}, Namespaces: []string{s.namespace}, Tell: b.tell})
	controlplanetest.Eventually(t, "the kind that may not be read is named", func() bool {
		troubles := w.Status().Troubles
		for name, err := range troubles {
			if strings.HasPrefix(name, "secrets/") && strings.Contains(err.Error(), "forbidden") {
				return true
			}
		}
		return false
	})
	controlplanetest.Eventually(t, "the others are followed", func() bool {
		n := 0
		for _, f := range w.all() {
			if f.begun.Load() {
				n++
			}
		}
		return n == 2
	})
	s.set("a", "1")
	want(t, b.lines, "updated configmaps a [content] replace data.x:0→1")
}

// A run with --once fails if a kind is not there: it would find nothing to have changed.
func TestAKindThatIsNotThereIsAnErrorForWhoAsksOnce(t *testing.T) {
	s := newScene(t)
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	mgr, err := manager.New(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(mgr, Options{Kinds: []string{"gadgets.example.com"}, Journal: n.Journal, Route: toBook, Once: true})
	if err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownKindError
	if err := w.Run(t.Context()); !errors.As(err, &unknown) {
		t.Errorf("the error is %v, want one that names the kind", err)
	}
}

// A change that is told is in the journal at most a moment later; on a stop what was held
// back is told too.
func TestWhatIsHeldBackIsToldAtTheEnd(t *testing.T) {
	s := newScene(t)
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	p, w := watching(t, s.Config, Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook, Window: time.Hour})
	begun(t, w, 1)
	s.create("a")
	s.set("a", "1")
	s.set("a", "2")
	controlplanetest.Eventually(t, "all changes are seen", func() bool { return w.Status().Seen >= 3 })
	if lines := n.lines(); len(lines) != 0 {
		t.Errorf("told within the window: %q", lines)
	}
	p.Stop()
	want(t, n.lines, "created configmaps a, merged 3")
}

// An object that leaves a selection, comes again and leaves again does so twice, also for a receiver that
// drops events by their ID.
func TestAnObjectLeavesASelectionMoreThanOnce(t *testing.T) {
	s := newScene(t)
	s.create("a")
	var b book
	_, w := watching(t, s.Config, Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Labels: "tier=web", Tell: b.tell})
	begun(t, w, 1)
	for range 2 {
		s.patch("a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "web"}}})
		s.patch("a", map[string]any{"metadata": map[string]any{"labels": nil}})
	}
	want(t, b.lines, "created configmaps a", "deleted configmaps a", "created configmaps a", "deleted configmaps a")
	ids := map[string]bool{}
	for _, e := range b.events {
		ids[e.ID] = true
	}
	if len(ids) != len(b.events) {
		t.Errorf("%d events have %d IDs", len(b.events), len(ids))
	}
}
