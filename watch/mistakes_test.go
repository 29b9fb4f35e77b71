// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/where"
)

func aMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"x": "1"}}
}

// add adds objects to a server, or ends the test.
func add(t *testing.T, to *fakeapi.Resource, objects ...metav1.Object) {
	t.Helper()
	for _, o := range objects {
		if err := to.Add(o); err != nil {
			t.Fatal(err)
		}
	}
}

// passes lets time pass, and waits until what it brings is done.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestANamespaceThatDoesNotExistIsLoggedAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		spaces := api.Serve(namespaces)
		add(t, spaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		b := newBubble(t, api, silent{})
		var told book
		if err := b.run(Options{Kinds: []string{"configmaps"}, Namespaces: []string{"shop", "shopp"}, Tell: told.tell}, func() {
			passes(time.Second)
			if !b.has("a namespace does not exist; its objects are published once it is created\" namespace=shopp didYouMean=shop") {
				t.Error("the log does not have the namespace that does not exist")
			}
			if b.has("namespace=shop\n") || b.has("exists now") {
				t.Error("the log has a namespace that exists")
			}
			add(t, spaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shopp"}})
			add(t, maps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shopp", Name: "new"}})
			passes(time.Second)
			if !b.has(`level=WARN msg="the namespace exists now" namespace=shopp`) {
				t.Error("the log does not have the namespace that was created")
			}
		}); err != nil {
			t.Error(err)
		}
		if got := told.lines(); len(got) != 1 || !strings.HasPrefix(got[0], "created configmaps new") {
			t.Errorf("told %q", got)
		}
	})
}

func TestOneObjectIsWatchedAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		b := newBubble(t, api, silent{})
		var told book
		if err := b.run(Options{Kinds: []string{"configmap/prices", "configmaps/prices", "configmaps/pods"}, Tell: told.tell}, func() {
			passes(time.Second)
			if !b.has("there is no object of this name; it is published once it is created\" kind=configmaps namespace=\"\" name=pods") || b.has("name=prices") {
				t.Error("the log does not have the object that is missing, and no other")
			}
			prices := aMap("prices")
			prices.Data["x"] = "2"
			if err := maps.Put(prices); err != nil {
				t.Fatal(err)
			}
			add(t, maps, aMap("other"), aMap("pods"))
			passes(time.Second)
		}); err != nil {
			t.Error(err)
		}
		got := told.lines()
		slices.Sort(got) // each object has a follower of its own
		if len(got) != 2 || !strings.HasPrefix(got[0], "created configmaps pods") || !strings.HasPrefix(got[1], "updated configmaps prices") {
			t.Errorf("told %q", got)
		}
	})
}

// "pods services" names a Pod; the user may have meant two kinds.
func TestAnObjectWithTheNameOfAKindIsAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _ := serveMaps(t)
		api.Serve(namespaces)
		b := newBubble(t, api, silent{})
		var told book
		_ = b.run(Options{Kinds: []string{"configmaps/namespaces"}, Tell: told.tell}, func() {
			passes(time.Second)
			if !b.has(`ifItIsAKind="write configmaps,namespaces"`) {
				t.Error("the log does not ask whether a kind was meant")
			}
		})
	})
}

func TestASelectorThatTheServerRefusesEndsTheWatchWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _ := serveMaps(t)
		b := newBubble(t, api, silent{})
		var told book
		err := b.run(Options{Kinds: []string{"configmaps"}, Fields: "data.x=1", Tell: told.tell}, func() { passes(time.Minute) })
		if err == nil || !strings.Contains(err.Error(), "watching configmaps: the server refuses the selector: ") || !strings.Contains(err.Error(), "data.x") {
			t.Errorf("the error is %v, want that of the server, with kind and field", err)
		}
	})
}

func TestAFirstListThatDoesNotComeIsAnErrorForOneRun(t *testing.T) {
	j, _, err := journal.Open(filepath.Join(t.TempDir(), "cursor"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	synctest.Test(t, func(t *testing.T) {
		api, _ := serveMaps(t)
		b := newBubble(t, api, silent{body: func(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") != "" }})
		err := b.run(Options{Kinds: []string{"configmaps"}, Journal: j, Route: toBook, Once: true}, func() { passes(2 * oncePatience) })
		if want := "watching configmaps: the server has accepted the list and sent nothing for 30s"; err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %q", err, want)
		}
	})
}

func compiled(t *testing.T, text string) *where.Condition {
	t.Helper()
	c, err := where.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAConditionThatFailsForEveryObjectIsLogged(t *testing.T) {
	const fails = "the condition fails for every object so far"
	for name, test := range map[string]struct {
		condition string
		there     int // objects at the start
		logged    bool
	}{
		"a field that does not exist":       {`object.spec.replicas == 3`, 1, true},
		"a number compared with a name":     {`object.metadata.name > 3`, judged, true},
		"behind a verb":                     {`event.verb == "updated" && object.data.y == "1"`, 2, true},
		"one that holds for none":           {`object.data.x == "2"`, judged, false},
		"the old state, which no list has":  {`old.data.x != new.data.x`, judged, false},
		"a field that is asked for":         {`has(object.data.y) && object.data.y == "1"`, judged, false},
		"a field that some of them have":    {`object.data.only == "1"`, judged - 1, false}, // the one that has it may be the last
		"nothing there, and then creations": {`object.spec.replicas == 3`, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := fakeapi.New()
				maps := api.Serve(configMaps)
				for i := range test.there {
					add(t, maps, aMap(fmt.Sprint("a", i)))
				}
				some := aMap("some")
				some.Data["only"] = "1"
				if test.there >= judged-1 {
					add(t, maps, some)
				}
				b := newBubble(t, api, silent{})
				var told book
				_ = b.run(Options{Kinds: []string{"configmaps"}, Keep: compiled(t, test.condition).Matches, Tell: told.tell}, func() {
					passes(time.Second)
					if test.there == 0 {
						for i := range judged {
							if b.has(fails) {
								t.Fatalf("the condition failed for %d objects, and is logged", i)
							}
							add(t, maps, aMap(fmt.Sprint("b", i)))
						}
						passes(time.Second)
					}
					if b.has(fails) != test.logged {
						t.Errorf("the condition is logged: %t, want %t", !test.logged, test.logged)
					}
				})
			})
		})
	}
}

func TestAConditionThatSucceedsAtLastIsLoggedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		b := newBubble(t, api, silent{})
		var told book
		_ = b.run(Options{Kinds: []string{"configmaps"}, Keep: compiled(t, `object.data.y == "1"`).Matches, Tell: told.tell}, func() {
			passes(time.Second)
			later := aMap("later")
			later.Data["y"] = "1"
			add(t, maps, later)
			passes(time.Second)
		})
		if !b.has("no such key") || !b.has("the condition did not fail for an object now") || len(told.lines()) != 1 {
			t.Errorf("told %q", told.lines())
		}
	})
}

// An account with rights in a namespace only can watch every kind in it.
func TestEveryKindOfANamespaceNeedsNoRightsElsewhere(t *testing.T) {
	nodes := object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		add(t, api.Serve(namespaces), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		var allowed atomic.Bool
		api.Serve(nodes).Before(func(r *fakeapi.Request) *metav1.Status {
			if allowed.Load() {
				return nil
			}
			return fakeapi.Forbidden("nodes")
		})
		b := newBubble(t, api, silent{})
		var told book
		_ = b.run(Options{All: true, Namespaces: []string{"shop"}, Tell: told.tell}, func() {
			passes(time.Second)
			if !b.has("watching: what was there has been seen") || b.has("level=WARN") {
				t.Error("the watch has not begun, or warns of a kind outside of the namespace")
			}
			add(t, maps, aMap("new"))
			allowed.Store(true)
			passes(2 * outsideAgain)
			add(t, api.Of(nodes), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
			passes(time.Second)
		})
		if got := strings.Join(told.lines(), "\n"); !strings.Contains(got, "created configmaps new") || !strings.Contains(got, "created nodes node-1") {
			t.Errorf("told %q", got)
		}
	})
}

// A kind that is defined is followed at once, and not after the next discovery in ten seconds.
func TestAKindThatIsDefinedIsFollowedAtOnce(t *testing.T) {
	for _, of := range []object.Resource{definitions, apiServices} {
		t.Run(of.Plural, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, _ := serveMaps(t)
				defining := api.Serve(of)
				b := newBubble(t, api, silent{})
				var told book
				_ = b.run(Options{Kinds: []string{"gadgets.watch.example.com"}, Tell: told.tell}, func() {
					passes(time.Minute + 3*time.Second) // between two discoveries
					definition := &unstructured.Unstructured{Object: tree{"apiVersion": of.Group + "/v1", "kind": of.Kind, "metadata": tree{"name": "gadgets.watch.example.com"}}}
					add(t, defining, definition)
					// The server serves a kind a little after its definition is there.
					passes(500 * time.Millisecond)
					all := api.Serve(gadgets)
					began := time.Now()
					for !b.has("a kind has appeared") && time.Since(began) < time.Minute {
						passes(10 * time.Millisecond)
					}
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("the kind is followed after %s", took)
					}
					add(t, all, &unstructured.Unstructured{Object: tree{"apiVersion": gadgets.Group + "/v1", "kind": gadgets.Kind, "metadata": tree{"namespace": "shop", "name": "one"}}})
					passes(time.Second)
				})
				if got := told.lines(); len(got) != 1 {
					t.Errorf("told %q", got)
				}
			})
		})
	}
}
