// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var managedPods = corev1.SchemeGroupVersion.WithKind("Pod")

// wishes are the lists and watches that a server received, and whether the client requested to
// leave managedFields out.
type wishes struct {
	next http.RoundTripper

	mu  sync.Mutex
	all []string
}

func (w *wishes) note(verb string, r *http.Request) {
	accept := strings.Split(r.Header.Get("Accept"), ",")
	slim := 0
	for _, form := range accept {
		if strings.HasSuffix(form, ";drop=metadata.managedFields") {
			slim++
		}
	}
	if slim != 0 && slim != len(accept) || strings.Count(r.Header.Get("Accept"), "drop=") != slim {
		verb += " malformed"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, fmt.Sprint(verb, " slim=", slim > 0))
}

func (w *wishes) was() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// RoundTrip notes what goes to a real server.
func (w *wishes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "true" {
		w.note("watch", r)
	} else {
		w.note("list", r)
	}
	return w.next.RoundTrip(r)
}

// informers calls f with each way to hold Pods, and with whether it is one without
// managedFields.
func informers(namespace string, f func(name string, slim bool, informer func(*cache.Factory) cache.Handle)) {
	in := cache.InNamespace(namespace)
	f("whole", true, func(factory *cache.Factory) cache.Handle { return cache.Informer[*corev1.Pod](factory, in).Handle() })
	f("metadata", true, func(factory *cache.Factory) cache.Handle {
		return cache.Informer[*metav1.PartialObjectMetadata](factory, in, cache.OfKind(managedPods)).Handle()
	})
	f("unstructured", true, func(factory *cache.Factory) cache.Handle {
		return cache.Informer[*unstructured.Unstructured](factory, in, cache.OfKind(managedPods)).Handle()
	})
	f("transformed", true, func(factory *cache.Factory) cache.Handle {
		return cache.Informer[*corev1.Pod](factory, in, cache.Transform(func(p *corev1.Pod) (*corev1.Pod, error) {
			if p.ManagedFields != nil {
				return nil, fmt.Errorf("the transform of %s was given managedFields", p.Name)
			}
			return p, nil
		})).Handle()
	})
	f("managed", false, func(factory *cache.Factory) cache.Handle {
		return cache.Informer[*corev1.Pod](factory, in, cache.WithManagedFields()).Handle()
	})
}

// An informer that does not keep managedFields asks for objects without them, by watch
// list, list and watch. A server that does not do that is asked once for each.
func TestInformersAskForNoMoreThanTheyKeep(t *testing.T) {
	informers("ns", func(name string, slim bool, informer func(*cache.Factory) cache.Handle) {
		for _, refuses := range []bool{false, true} {
			for _, lists := range []bool{false, true} { // the server has no watch lists
				t.Run(fmt.Sprintf("%s, refused=%t, lists=%t", name, refuses, lists), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						asked := new(wishes)
						w.server.Before(func(q *fakeapi.Request) *metav1.Status {
							asked.note(q.Verb, q.HTTP)
							if refuses && strings.Contains(q.HTTP.Header.Get("Accept"), "drop=") {
								return refusal(http.StatusNotAcceptable)
							}
							if lists && q.HTTP.URL.Query().Has("sendInitialEvents") {
								return refusal(http.StatusMethodNotAllowed)
							}
							return nil
						})
						pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "me"}}}}
						if err := w.server.Add(pod); err != nil {
							t.Fatal(err)
						}
						i := informer(w.factory)
						defer w.run(t)()
						if err := i.WaitForSync(t.Context()); err != nil {
							t.Fatal(err)
						}
						if _, there := i.Meta(object.KeyOf(pod)); !there {
							t.Error("the Pod is not there")
						}
						var want []string
						switch {
						case slim && refuses && lists:
							// What a watch list without managedFields was refused for is known
							// with the list.
							want = []string{"watch slim=true", "watch slim=false", "list slim=true", "list slim=false", "watch slim=false"}
						case slim && refuses:
							want = []string{"watch slim=true", "watch slim=false"}
						case lists:
							want = []string{"watch slim=" + fmt.Sprint(slim), "list slim=" + fmt.Sprint(slim), "watch slim=" + fmt.Sprint(slim)}
						default:
							want = []string{"watch slim=" + fmt.Sprint(slim)}
						}
						synctest.Wait()
						if got := asked.was(); !slices.Equal(got, want) {
							t.Errorf("the server received\n%q, want\n%q", got, want)
						}
					})
				})
			}
		}
	})
}

func refusal(code int32) *metav1.Status {
	s := fakeapi.Forbidden("this form")
	s.Code, s.Reason = code, metav1.StatusReasonNotAcceptable
	if code == http.StatusMethodNotAllowed {
		s.Reason = metav1.StatusReasonMethodNotAllowed
	}
	return s
}

// A real server, one that knows of no such wish, serves informers of each form all the same.
func TestARealServerServesInformersThatAskForLess(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	view := client.For[*corev1.Pod](cluster.Client)
	if _, err := view.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	informers(namespace, func(name string, slim bool, informer func(*cache.Factory) cache.Handle) {
		t.Run(name, func(t *testing.T) {
			asked := new(wishes)
			config := rest.CopyConfig(cluster.Config)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { asked.next = next; return asked })
			c, err := client.New(config)
			if err != nil {
				t.Fatal(err)
			}
			i := informer(runFactory(t, c))
			if err := i.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			before, there := i.Meta(object.KeyOf(pod))
			if !there {
				t.Fatal("the Pod is not there")
			}
			patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"told": name}}})
			if err != nil {
				t.Fatal(err)
			}
			changed, err := view.Patch(t.Context(), object.KeyOf(pod), patch)
			if err != nil {
				t.Fatal(err)
			}
			seen, stop := i.Observed(object.Version(changed.ResourceVersion))
			defer stop()
			<-seen
			after, _ := i.Meta(object.KeyOf(pod))
			if got, _ := after.Labels.Lookup("told"); got != name || before.UID != after.UID {
				t.Errorf("after the change the informer has labels %v of %s", after.Labels, after.UID)
			}
			// The first watch brings the state. The server compresses it, so a second one brings the change.
			if got, want := asked.was(), "watch slim="+fmt.Sprint(slim); !slices.Equal(got, []string{want, want}) {
				t.Errorf("the server received %q, want %q twice", got, want)
			}
		})
	})
}
