// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

var gadgets = object.Resource{Group: "watch.example.com", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true}

// serves has the server serve gadgets in these versions.
func (s *scene) serves(versions ...string) {
	s.t.Helper()
	s.Define(s.t, gadgets, versions...)
	controlplanetest.Eventually(s.t, "gadgets are discovered", func() bool {
		served, _ := s.discover()
		return slices.ContainsFunc(served, func(s client.Served) bool { return s.Group == gadgets.Group && s.Version == slices.Max(versions) })
	})
}

func (s *scene) discover() ([]client.Served, *client.DiscoveryError) {
	s.t.Helper()
	served, err := s.Client.Discover(s.t.Context())
	var partial *client.DiscoveryError
	if err != nil && !errors.As(err, &partial) {
		s.t.Fatal(err)
	}
	return served, partial
}

func (s *scene) gadget(verb, name, value string) {
	s.t.Helper()
	of := client.ForResource[*unstructured.Unstructured](s.Client, gadgets)
	o := &unstructured.Unstructured{Object: tree{
		"apiVersion": gadgets.Group + "/v1", "kind": gadgets.Kind, "metadata": tree{"namespace": s.namespace, "name": name}, "spec": tree{"x": value},
	}}
	var err error
	switch verb {
	case "create":
		_, err = of.Create(s.t.Context(), o)
	case "patch":
		var patch client.Patch
		if patch, err = client.MergePatch(tree{"spec": tree{"x": value}}); err == nil {
			_, err = of.Patch(s.t.Context(), s.key(name), patch)
		}
	case "delete":
		err = of.Delete(s.t.Context(), s.key(name))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// A kind that is served in another version is followed anew, and its objects are no new
// ones. What happens between the two followers is told.
func TestAnotherVersionOfAKindIsNoNewKind(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("with a journal: %t", kept), func(t *testing.T) {
			s := newScene(t)
			s.serves("v1")
			t.Cleanup(func() { s.Undefine(t, gadgets) })
			for _, name := range []string{"stays", "changes", "goes"} {
				s.gadget("create", name, "0")
			}
			var b book
			lines, options := b.lines, Options{Kinds: []string{"gadgets.watch.example.com"}, Namespaces: []string{s.namespace}, Tell: b.tell}
			if kept {
				n := open(t, filepath.Join(t.TempDir(), "cursor"))
				lines, options.Tell, options.Journal, options.Route = n.lines, nil, n.Journal, toBook
			}
			_, w := watching(t, s.Config, options)
			begun(t, w, 1)
			first := w.all()[0]
			s.gadget("patch", "changes", "1")
			want(t, lines, "updated gadgets.watch.example.com changes [content] replace spec.x:0→1")

			s.serves("v1", "v2")
			// The first follower is gone, and the next is not there yet.
			first.stop()
			<-first.legacy.ended
			s.gadget("patch", "changes", "2")
			s.gadget("delete", "goes", "")
			s.gadget("create", "new", "0")
			served, unknown := s.discover()
			if err := discovered(t, w, served, unknown, false); err != nil {
				t.Fatal(err)
			}
			begun(t, w, 1)
			if version := w.all()[0].resource.Version; version != "v2" {
				t.Fatalf("the version that is followed is %s", version)
			}
			s.gadget("patch", "stays", "1")
			sorted := func() []string {
				all := lines()
				for i := range all { // whether the server knows the step or not
					all[i] = strings.TrimSuffix(all[i], ", stale")
				}
				if len(all) > 4 {
					slices.Sort(all[1:4])
				}
				return all
			}
			changed := "updated gadgets.watch.example.com changes [content status], missed"
			if kept {
				changed = "updated gadgets.watch.example.com changes [content], missed"
			}
			want(t, sorted,
				"updated gadgets.watch.example.com changes [content] replace spec.x:0→1",
				"created gadgets.watch.example.com new, missed",
				"deleted gadgets.watch.example.com goes, missed", changed,
				"updated gadgets.watch.example.com stays [content] replace spec.x:0→1",
			)
		})
	}
}

// A kind whose server was away at the start was there all the same: its objects are not
// told as created.
func TestAKindThatWasNotKnownAtFirstIsNoNewKind(t *testing.T) {
	s := newScene(t)
	s.create("old")
	var b book
	_, w := watching(t, s.Config, Options{Kinds: []string{"secrets"}, Namespaces: []string{s.namespace}, Tell: b.tell})
	begun(t, w, 1)
	served, _ := s.discover()
	w.mu.Lock()
	w.kinds = discovery.Set{} // what follows are the first discoveries
	w.mu.Unlock()
	w.options.Kinds = append(w.options.Kinds, "configmaps")
	core := map[schema.GroupVersion]error{{Version: "v1"}: errors.New("away")}
	var rest []client.Served
	for _, s := range served {
		if s.Plural != "configmaps" {
			rest = append(rest, s)
		}
	}
	for _, found := range []struct {
		served  []client.Served
		unknown *client.DiscoveryError
	}{{rest, &client.DiscoveryError{Failed: core}}, {served, nil}} {
		if err := discovered(t, w, found.served, found.unknown, false); err != nil {
			t.Fatal(err)
		}
	}
	begun(t, w, 2)
	s.create("new")
	want(t, b.lines, "created configmaps new")
}

// discovered has a Watch follow what a discovery has found. The server has one more kind,
// which nobody can watch.
func discovered(t *testing.T, w *Watch, served []client.Served, unknown *client.DiscoveryError, first bool) error {
	t.Helper()
	var err error
	if unknown != nil {
		err = unknown
	}
	kinds, ok := w.with(append(slices.Clone(served), client.Served{Resource: object.Resource{Version: "v1", Plural: "bindings", Kind: "Binding"}}), err)
	if !ok {
		t.Fatal("the discovery says nothing")
	}
	return w.follow(t.Context(), kinds, first)
}

// That a kind is not there can be said when it is known what is there.
func TestAKindIsAMistakeOnlyOnceAllIsKnown(t *testing.T) {
	w := &Watch{options: Options{Kinds: []string{"podmetrics"}}, waiting: map[string]bool{}, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	away := &client.DiscoveryError{Failed: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("away")}}
	if err := discovered(t, w, nil, away, true); err != nil {
		t.Errorf("while a part is unknown: %v", err)
	}
	if err := discovered(t, w, nil, nil, false); !errors.As(err, new(*UnknownKindError)) {
		t.Errorf("the error is %v, want one that names the kind", err)
	}
}

// A kind may go while nobody takes what was told of it. What happened up to then is told.
func TestWhatHappenedBeforeAKindWentIsTold(t *testing.T) {
	s := newScene(t)
	var b book
	gate := make(chan struct{})
	tell := func(ctx context.Context, events []*event.Event) error {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return b.tell(ctx, events)
	}
	_, w := watching(t, s.Config, Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Tell: tell})
	begun(t, w, 1)
	var lines []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.create(name)
		lines = append(lines, "created configmaps "+name)
	}
	f := w.all()[0]
	controlplanetest.Eventually(t, "all are there", func() bool { return f.informer.Snapshot().Len() == len(lines) })
	if err := discovered(t, w, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	close(gate)
	<-f.legacy.ended
	want(t, b.lines, lines...)
}

// A kind that was waited for is new with all of its objects, though it came while nobody
// watched.
func TestAKindThatCameMeanwhileIsToldFromItsFirstObjectOn(t *testing.T) {
	s := newScene(t)
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	options := Options{Kinds: []string{"gadget.watch.example.com"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook}
	p, _ := watching(t, s.Config, options)
	controlplanetest.Eventually(t, "it is known that the kind is not there", func() bool { return len(n.Selections()) == 1 })
	p.Stop()
	s.serves("v1")
	t.Cleanup(func() { s.Undefine(t, gadgets) })
	s.gadget("create", "a", "0")
	p, w := watching(t, s.Config, options)
	want(t, n.lines, "created gadgets.watch.example.com a, missed")
	begun(t, w, 1)
	name := w.all()[0].name
	remembers(t, n, name)
	p.Stop()
	if all := n.Selections(); !slices.Equal(all, []string{name}) {
		t.Errorf("the journal knows %q, want one selection", all)
	}
}

// A kind that appears is known to have been empty before anything of it is told: who dies
// in the middle goes on with the rest.
func TestAKindThatAppearsIsKnownAtOnce(t *testing.T) {
	s := newScene(t)
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	_, w := watching(t, s.Config, Options{Kinds: []string{"secrets"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook})
	begun(t, w, 1)
	s.create("a")
	served, unknown := s.discover()
	w.options.Kinds = append(w.options.Kinds, "configmaps")
	if err := discovered(t, w, served, unknown, false); err != nil {
		t.Fatal(err)
	}
	if name := w.selection(configMaps, s.namespace, ""); !slices.Contains(n.Selections(), name) {
		t.Errorf("the journal knows %q, not %q", n.Selections(), name)
	}
	want(t, n.lines, "created configmaps a")
}

// A watch that ends while steps wait for it leaves nothing running.
func TestNothingOfAWatchIsLeft(t *testing.T) {
	s := newScene(t)
	blocked := make(chan struct{})
	var once sync.Once
	tell := func(ctx context.Context, _ []*event.Event) error {
		once.Do(func() { close(blocked) })
		<-ctx.Done()
		return nil
	}
	p, w := watching(t, s.Config, Options{Kinds: []string{"configmaps", "secrets"}, Namespaces: []string{s.namespace}, Tell: tell})
	begun(t, w, 2)
	for i := range 5 {
		s.create(fmt.Sprint("a", i))
	}
	<-blocked
	all := w.all()
	if err := discovered(t, w, nil, nil, false); err != nil { // some are to finish just then
		t.Fatal(err)
	}
	p.Stop()
	for _, f := range all {
		<-f.legacy.ended
	}
	controlplanetest.Eventually(t, "no goroutine of a follower is left", func() bool {
		stacks := make([]byte, 1<<22)
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "watch.(*follower)")
	})
}
