// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/object"
)

// compareWith compares a cache of controller-runtime with one of this package. set sets the options of both.
func compareWith(t *testing.T, set func(*crcache.Options), run func(t *testing.T, w *world, seen *methodtest.Transcript)) {
	t.Helper()
	c := methodtest.Comparison[*world]{Run: run}
	c.Compare(t, func(t *testing.T, ours bool, run func(*testing.T, *world)) {
		build := newPeer
		if ours {
			build = controllerruntime.NewCache
		}
		inWorldWith(t, func(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
			set(&o)
			return build(config, o)
		}, func(t *testing.T, w *world) {
			for _, r := range []object.Resource{pods, nodes} { // as a mapper that asks a server
				r.Kind += "List"
				w.serve(r)
			}
			run(t, w)
		})
	})
}

// levels are the places of a setting, the one that wins first.
var levels = []string{"ByObject.Namespaces", "ByObject", "DefaultNamespaces", "defaults"}

// marked is a transform that writes a mark into the annotations of an object of any type.
func marked(mark string) toolscache.TransformFunc {
	return func(o any) (any, error) {
		o.(crclient.Object).SetAnnotations(map[string]string{"transformed": mark})
		return o, nil
	}
}

// configOf is a configuration that selects the Pods of a level, and marks them with its name.
func configOf(level string, shared bool) crcache.Config {
	return crcache.Config{
		LabelSelector: labels.SelectorFromSet(labels.Set{"level": level}), Transform: marked(level), UnsafeDisableDeepCopy: &shared,
	}
}

// atLevels sets the options of the levels that are in the set. The first one has UnsafeDisableDeepCopy as given, and the
// others have the opposite.
func atLevels(o *crcache.Options, set []string, shared bool) {
	configs := map[string]crcache.Config{}
	for i, level := range set {
		configs[level] = configOf(level, shared == (i == 0))
	}
	by, defaults := configs["ByObject"], configs["defaults"]
	o.ByObject = map[crclient.Object]crcache.ByObject{&corev1.Pod{}: {
		Label: by.LabelSelector, Transform: by.Transform, UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy,
		Namespaces: map[string]crcache.Config{"team-a": configs["ByObject.Namespaces"]},
	}}
	o.DefaultNamespaces = map[string]crcache.Config{"team-a": configs["DefaultNamespaces"]}
	o.DefaultLabelSelector, o.DefaultTransform, o.DefaultUnsafeDisableDeepCopy = defaults.LabelSelector, defaults.Transform, defaults.UnsafeDisableDeepCopy
}

// podsOf describes the Pods that the cache has: namespace, name, the mark of a transform, and whether readers share them.
func (w *world) podsOf(t *testing.T, options ...crclient.ListOption) string {
	t.Helper()
	one, other := &corev1.PodList{}, &corev1.PodList{}
	for _, list := range []*corev1.PodList{one, other} {
		if err := w.cache.List(soon(t), list, options...); err != nil {
			return err.Error()
		}
	}
	places := map[string]uintptr{}
	for i := range other.Items {
		places[other.Items[i].Namespace+"/"+other.Items[i].Name] = labelsOf(&other.Items[i])
	}
	var all []string
	for i := range one.Items {
		p := &one.Items[i]
		key := crclient.ObjectKeyFromObject(p)
		read := &corev1.Pod{}
		if err := w.cache.Get(soon(t), key, read); err != nil {
			t.Fatal(err)
		}
		if got, listed := labelsOf(read) == labelsOf(p), places[key.String()] == labelsOf(p); got != listed {
			t.Errorf("%s is shared by readers of Get %t, of List %t", key, got, listed)
		}
		all = append(all, fmt.Sprintf("%s %s shared=%t", key, cmp.Or(p.Annotations["transformed"], "-"), places[key.String()] == labelsOf(p)))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestASettingComesFromTheFirstPlaceThatHasIt(t *testing.T) {
	for bits := range 1 << len(levels) {
		var set []string
		for i, level := range levels {
			if bits&(1<<i) != 0 {
				set = append(set, level)
			}
		}
		for _, shared := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s shared=%t", cmp.Or(strings.Join(set, "+"), "none"), shared), func(t *testing.T) {
				compareWith(t, func(o *crcache.Options) { atLevels(o, set, shared) }, func(t *testing.T, w *world, seen *methodtest.Transcript) {
					for i, level := range levels {
						w.pod(t, "team-a", fmt.Sprint("p", i), labelled("level", level))
						w.pod(t, "team-b", fmt.Sprint("p", i), labelled("level", level)) // the cache does not have this namespace
					}
					defer w.start(t)()
					got := w.podsOf(t)
					seen.Note("%s", got)
					var expected []string
					for i, level := range levels {
						if len(set) == 0 {
							expected = append(expected, fmt.Sprintf("team-a/p%d - shared=false", i))
						} else if set[0] == level {
							expected = append(expected, fmt.Sprintf("team-a/p%d %s shared=%t", i, level, shared))
						}
					}
					if want := strings.Join(expected, "\n"); got != want {
						t.Errorf("the cache has\n%s\nwant\n%s", got, want)
					}
				})
			})
		}
	}
}

// An empty map of namespaces is all of them, also if the cache has default namespaces.
func TestNamespacesOfAKindThatAreEmpty(t *testing.T) {
	for name, test := range map[string]struct {
		by   crcache.ByObject
		want string
	}{
		"nil":   {crcache.ByObject{}, "team-a/web of-the-namespace shared=true"},
		"empty": {crcache.ByObject{Namespaces: map[string]crcache.Config{}}, "team-a/db of-the-cache shared=false\nteam-a/web of-the-cache shared=false\nteam-b/web of-the-cache shared=false"},
		"empty, with a label": {
			crcache.ByObject{Namespaces: map[string]crcache.Config{}, Label: selector(t, "app=web")},
			"team-a/web of-the-cache shared=false\nteam-b/web of-the-cache shared=false",
		},
		"empty, with a transform": {
			crcache.ByObject{Namespaces: map[string]crcache.Config{}, Transform: marked("of-the-kind")},
			"team-a/db of-the-kind shared=false\nteam-a/web of-the-kind shared=false\nteam-b/web of-the-kind shared=false",
		},
		"all, and one of its own": {
			crcache.ByObject{Transform: marked("of-the-kind"), Namespaces: map[string]crcache.Config{"": {}, "team-b": {Transform: marked("of-b")}}},
			"team-a/db of-the-kind shared=false\nteam-a/web of-the-kind shared=false\nteam-b/web of-b shared=false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			shared := true
			compareWith(t, func(o *crcache.Options) {
				o.DefaultNamespaces = map[string]crcache.Config{"team-a": {LabelSelector: selector(t, "app=web"), Transform: marked("of-the-namespace"), UnsafeDisableDeepCopy: &shared}}
				o.DefaultTransform = marked("of-the-cache")
				o.ByObject = map[crclient.Object]crcache.ByObject{&corev1.Pod{}: test.by}
			}, func(t *testing.T, w *world, seen *methodtest.Transcript) {
				w.pod(t, "team-a", "web", labelled("app", "web"))
				w.pod(t, "team-a", "db", labelled("app", "db"))
				w.pod(t, "team-b", "web", labelled("app", "web"))
				defer w.start(t)()
				got := w.podsOf(t)
				seen.Note("%s", got)
				if got != test.want {
					t.Errorf("the cache has\n%s\nwant\n%s", got, test.want)
				}
			})
		})
	}
}

// ByObject holds for a kind in each view, and for no other kind.
func TestLabelAndTransformOfAKindHoldInEachView(t *testing.T) {
	compareWith(t, func(o *crcache.Options) {
		o.ByObject = map[crclient.Object]crcache.ByObject{&corev1.Pod{}: {Label: selector(t, "app=web"), Transform: marked("pod")}}
	}, func(t *testing.T, w *world, seen *methodtest.Transcript) {
		w.pod(t, "team-a", "web", labelled("app", "web"))
		w.pod(t, "team-a", "db", labelled("app", "db"))
		if err := w.api.Of(nodes).Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		for i, o := range views() {
			for _, name := range []string{"web", "db"} {
				err := w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-a", Name: name}, o)
				seen.Note("Get %T %s: %v %s", o, name, err, o.GetAnnotations()["transformed"])
			}
			noteList(t, w, seen, lists()[i])
		}
		node := &corev1.Node{}
		seen.Note("%v %v", w.cache.Get(soon(t), crclient.ObjectKey{Name: "n"}, node), node.Annotations)
	})
}

func TestFieldsAreMatchedInSeveralNamespaces(t *testing.T) {
	for name, namespaces := range map[string]map[string]crcache.Config{
		"two namespaces":          {"team-a": {}, "team-b": {LabelSelector: selector(t, "app")}},
		"two, and all the others": {"team-a": {}, "team-b": {LabelSelector: selector(t, "app")}, "": {}},
	} {
		t.Run(name, func(t *testing.T) {
			compareWith(t, func(o *crcache.Options) { o.DefaultNamespaces = maps.Clone(namespaces) }, func(t *testing.T, w *world, seen *methodtest.Transcript) {
				byNode := func(o crclient.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName, "any"} }
				seen.Note("%v", w.cache.IndexField(t.Context(), &corev1.Pod{}, "node", byNode))
				for _, namespace := range []string{"team-a", "team-b", "team-c", "team-d"} {
					w.pod(t, namespace, "a", on("n1"), labelled("app", "web"))
					w.pod(t, namespace, "b", on("n1"))
					w.pod(t, namespace, "c", on("n2"), labelled("app", "web"))
				}
				defer w.start(t)()
				note := func(when string) {
					for _, fields := range []crclient.MatchingFields{{"node": "n1"}, {"node": "n2"}, {"node": "any"}, {"node": "n3"}, {"zone": "z"}} {
						for _, namespace := range []string{"", "team-a", "team-b", "team-c"} {
							seen.Note("%s, %v in %q:\n%s", when, fields, namespace, w.podsOf(t, fields, crclient.InNamespace(namespace)))
						}
						seen.Note("with labels:\n%s", w.podsOf(t, fields, crclient.MatchingLabels{"app": "web"}))
					}
				}
				note("first")
				w.pod(t, "team-b", "a", on("n3"), labelled("app", "web"))
				w.removePod("team-a", "a")
				w.pod(t, "team-b", "d", on("n1"), labelled("app", "db"))
				note("then")
				for _, fields := range []crclient.MatchingFields{{"node": "n1"}, {"node": "any"}} {
					for limit := range int64(6) {
						var list corev1.PodList
						err := w.cache.List(soon(t), &list, fields, crclient.Limit(limit))
						seen.Note("with a limit of %d: %d %v", limit, len(list.Items), err)
					}
				}
			})
		})
	}
}

// Each reader gets the object of the cache itself, in the view that came first.
func TestReadersShareObjectsByDefault(t *testing.T) {
	for i, sample := range views() {
		t.Run(fmt.Sprintf("%T", sample), func(t *testing.T) {
			compareWith(t, func(o *crcache.Options) {
				yes := true
				o.DefaultUnsafeDisableDeepCopy = &yes
			}, func(t *testing.T, w *world, seen *methodtest.Transcript) {
				w.pod(t, "team-a", "a", labelled("app", "web"))
				defer w.start(t)()
				one, two, list := views()[i], views()[i], lists()[i]
				for _, o := range []crclient.Object{one, two} {
					seen.Note("%v", w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-a", Name: "a"}, o))
				}
				seen.Note("%v", w.cache.List(soon(t), list))
				seen.Note("shared by Get %t, by List %t\n%s", contentOf(one) == contentOf(two), contentOf(one) == contentOf(firstOf(list)), text(t, one))
				if contentOf(one) != contentOf(two) {
					t.Error("two readers have objects of their own")
				}
			})
		})
	}
}

// contentOf is the address of a part of an object, which copies do not share.
func contentOf(o crclient.Object) uintptr {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return reflect.ValueOf(u.Object).Pointer()
	}
	return labelsOf(o)
}

// firstOf returns the first object of a list.
func firstOf(list crclient.ObjectList) crclient.Object {
	switch l := list.(type) {
	case *unstructured.UnstructuredList:
		return &l.Items[0]
	case *metav1.PartialObjectMetadataList:
		return &l.Items[0]
	}
	return &list.(*corev1.PodList).Items[0]
}
