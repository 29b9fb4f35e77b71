// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/object"
)

type comparison = methodtest.Comparison[*world]

// comparisons are those of all interfaces.
var comparisons = slices.Concat(comparisonsOfCaches, comparisonsOfInformers, comparisonsOfSharedInformers)

// TestSideBySideWithControllerRuntime does the same with the cache of controller-runtime and with that of
// this package.
func TestSideBySideWithControllerRuntime(t *testing.T) {
	for _, c := range comparisons {
		t.Run(c.Name, func(t *testing.T) {
			c.Compare(t, func(t *testing.T, ours bool, run func(t *testing.T, w *world)) {
				build := newPeer
				if ours {
					build = controllerruntime.NewCache
				}
				inWorldWith(t, build, run)
			})
		})
	}
}

// newPeer makes a cache of controller-runtime. A watch that ends with an error, as one does when its cache
// stops, leaves a goroutine of apimachinery's watch.Filter behind, which a bubble of synctest does not
// allow. So watches end without one.
func newPeer(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return endsQuietly{next} })
	return crcache.New(config, o)
}

type endsQuietly struct{ next http.RoundTripper }

func (t endsQuietly) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		answer.Body = quietBody{answer.Body}
	}
	return answer, err
}

type quietBody struct{ io.ReadCloser }

func (b quietBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// The tables of docs/controller-runtime.md have each method of the interfaces, and each row is shown by a
// comparison.
func TestTheDocumentHasEachMethod(t *testing.T) {
	text, err := os.ReadFile("../../docs/controller-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range methodtest.Check(string(text), []methodtest.Interface{
		methodtest.Of[crcache.Cache]("cache.Cache"),
		methodtest.Of[crcache.Informer]("cache.Informer"),
		methodtest.Of[toolscache.SharedIndexInformer]("toolscache.SharedIndexInformer"),
		methodtest.Of[toolscache.Indexer]("toolscache.Indexer"),
	}, methodtest.ShownBy(comparisons)) {
		t.Error("docs/controller-runtime.md: " + wrong)
	}
}

// methods returns the full names of methods of an interface.
func methods(of string, names ...string) []string {
	for i, name := range names {
		names[i] = of + "." + name
	}
	return names
}

// text is an object as JSON.
func text(t *testing.T, o any) string {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// views are empty Pods in the three views.
func views() []crclient.Object {
	return []crclient.Object{&corev1.Pod{}, unstructuredOf(podKind), metadataOf(podKind)}
}

// informer returns an informer, which need not have synced.
func (w *world) informer(t *testing.T, o crclient.Object) crcache.Informer {
	t.Helper()
	informer, err := w.cache.GetInformer(t.Context(), o, crcache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	return informer
}

func (w *world) removePod(namespace, name string) {
	w.api.Of(pods).Remove(object.Key{Namespace: namespace, Name: name})
	synctest.Wait()
}

// gap makes changes while no watch runs. The informers then have to list.
func (w *world) gap(t *testing.T, changes func()) {
	t.Helper()
	w.api.HoldWatches(true)
	changes()
	w.api.Compact(w.api.ResourceVersion())
	w.api.CutConnections()
	w.api.HoldWatches(false)
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

// events is a handler that writes its calls down.
type events struct {
	mu    sync.Mutex
	calls []string
}

func (e *events) note(call string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, call)
}

func (e *events) OnAdd(o any, initial bool) {
	what := "add"
	if initial {
		what = "initial"
	}
	e.note(what + " " + nameIn(o))
}
func (e *events) OnUpdate(_, o any) { e.note("update " + nameIn(o)) }
func (e *events) OnDelete(o any)    { e.note("delete " + nameIn(o)) }

// was returns the calls since the last call of was.
func (e *events) was() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return strings.Join(calls, ", ")
}

func nameIn(o any) string {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return "tombstone " + tombstone.Key
	}
	return o.(crclient.Object).GetName()
}
