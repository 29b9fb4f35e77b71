// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/object"
)

// lag is how late the watches of these tests are.
const lag = 300 * time.Millisecond

// withClient runs a test with a client that reads its own writes from a cache, whose watches lag. There
// are the Pods team-a/a, team-a/b and team-b/a.
func withClient(t *testing.T, options crcache.Options, test func(t *testing.T, w *world, c crclient.Client)) {
	t.Helper()
	withClientOf(t, options, crclient.Options{}, test)
}

func withClientOf(t *testing.T, options crcache.Options, how crclient.Options, test func(t *testing.T, w *world, c crclient.Client)) {
	t.Helper()
	inWorld(t, options, func(t *testing.T, w *world) {
		c := w.client(t, how)
		w.pod(t, "team-a", "a", labelled("app", "web"))
		w.pod(t, "team-a", "b", labelled("app", "web"))
		w.pod(t, "team-b", "a", labelled("app", "web"))
		if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}, crcache.BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		w.api.Faults.LagWatches(func() time.Duration { return lag })
		test(t, w, c)
	})
}

// client makes a client that reads its own writes.
func (w *world) client(t *testing.T, o crclient.Options) crclient.Client {
	t.Helper()
	if o.Cache == nil {
		o.Cache = &crclient.CacheOptions{}
	}
	o.Mapper, o.Cache.Reader = w.mapper, w.cache
	c, err := controllerruntime.NewClient(w.api.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func podOf(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func keyOf(namespace, name string) crclient.ObjectKey {
	return crclient.ObjectKey{Namespace: namespace, Name: name}
}

// get reads a Pod; nil if there is none.
func get(t *testing.T, c crclient.Client, namespace, name string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	err := c.Get(t.Context(), keyOf(namespace, name), &p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// count returns how many Pods a list has.
func count(t *testing.T, c crclient.Client, options ...crclient.ListOption) int {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, options...); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// must fails the test unless err is nil, or one of those that are expected.
func must(t *testing.T, err error, expected ...func(error) bool) {
	t.Helper()
	for _, is := range expected {
		if is(err) {
			return
		}
	}
	if err != nil || len(expected) > 0 {
		t.Fatalf("the error is %v", err)
	}
}

func TestReadsSeeTheWritesOfTheirClient(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, w *world, c crclient.Client){
		"create and get": func(t *testing.T, _ *world, c crclient.Client) {
			must(t, c.Create(t.Context(), podOf("team-a", "new")))
			if get(t, c, "team-a", "new") == nil {
				t.Error("it is not there")
			}
		},
		"create and list": func(t *testing.T, _ *world, c crclient.Client) {
			must(t, c.Create(t.Context(), podOf("team-a", "new")))
			if n := count(t, c, crclient.InNamespace("team-a")); n != 3 {
				t.Errorf("%d Pods, want 3", n)
			}
		},
		"a name of the server": func(t *testing.T, _ *world, c crclient.Client) {
			p := podOf("team-a", "")
			p.GenerateName = "new-"
			must(t, c.Create(t.Context(), p))
			if get(t, c, "team-a", p.Name) == nil {
				t.Error("it is not there")
			}
		},
		"update": func(t *testing.T, _ *world, c crclient.Client) {
			p := get(t, c, "team-a", "a")
			p.Annotations = map[string]string{"n": "1"}
			must(t, c.Update(t.Context(), p))
			if got := get(t, c, "team-a", "a"); got.Annotations["n"] != "1" {
				t.Errorf("it has %v", got.Annotations)
			}
		},
		"patch": func(t *testing.T, _ *world, c crclient.Client) {
			p := get(t, c, "team-a", "a")
			patch := crclient.MergeFrom(p.DeepCopy())
			p.Annotations = map[string]string{"n": "1"}
			must(t, c.Patch(t.Context(), p, patch))
			if got := get(t, c, "team-a", "a"); got.Annotations["n"] != "1" {
				t.Errorf("it has %v", got.Annotations)
			}
		},
		"apply": func(t *testing.T, _ *world, c crclient.Client) {
			config := corev1apply.Pod("a", "team-a").WithAnnotations(map[string]string{"n": "1"})
			must(t, c.Apply(t.Context(), config, crclient.FieldOwner("test")))
			if got := get(t, c, "team-a", "a"); got.Annotations["n"] != "1" {
				t.Errorf("it has %v", got.Annotations)
			}
		},
		"the status": func(t *testing.T, _ *world, c crclient.Client) {
			p := get(t, c, "team-a", "a")
			p.Status.Message = "well"
			must(t, c.Status().Update(t.Context(), p))
			if got := get(t, c, "team-a", "a"); got.Status.Message != "well" {
				t.Errorf("its message is %q", got.Status.Message)
			}
		},
		"delete and get": func(t *testing.T, _ *world, c crclient.Client) {
			must(t, c.Delete(t.Context(), podOf("team-a", "a"), crclient.GracePeriodSeconds(0)))
			if get(t, c, "team-a", "a") != nil {
				t.Error("it is still there")
			}
		},
		"delete and list": func(t *testing.T, _ *world, c crclient.Client) {
			must(t, c.Delete(t.Context(), podOf("team-a", "a"), crclient.GracePeriodSeconds(0)))
			if n := count(t, c); n != 2 {
				t.Errorf("%d Pods, want 2", n)
			}
		},
		"create and delete": func(t *testing.T, _ *world, c crclient.Client) {
			p := podOf("team-a", "new")
			must(t, c.Create(t.Context(), p))
			must(t, c.Delete(t.Context(), p, crclient.GracePeriodSeconds(0)))
			if get(t, c, "team-a", "new") != nil {
				t.Error("it is there before it has gone")
			}
			time.Sleep(2 * lag) // of the bubble
			if get(t, c, "team-a", "new") != nil {
				t.Error("it came after it had gone")
			}
		},
		"delete and create": func(t *testing.T, _ *world, c crclient.Client) {
			must(t, c.Delete(t.Context(), podOf("team-a", "a"), crclient.GracePeriodSeconds(0)))
			p := podOf("team-a", "a")
			must(t, c.Create(t.Context(), p))
			if got := get(t, c, "team-a", "a"); got == nil || got.UID != p.UID {
				t.Errorf("got %v, want the new one", got)
			}
		},
		"delete by a state that is old": func(t *testing.T, w *world, c crclient.Client) {
			old := get(t, c, "team-a", "a")
			w.api.Faults.LagWatches(nil)
			w.api.Of(pods).Remove(object.Key{Namespace: "team-a", Name: "a"})
			w.pod(t, "team-a", "a")
			w.api.Faults.LagWatches(func() time.Duration { return lag })
			must(t, c.Delete(t.Context(), old, crclient.GracePeriodSeconds(0)))
			if get(t, c, "team-a", "a") != nil {
				t.Error("it is still there")
			}
		},
		"delete with a precondition": func(t *testing.T, _ *world, c crclient.Client) {
			p := get(t, c, "team-a", "a")
			must(t, c.Delete(t.Context(), podOf("team-a", "a"), crclient.Preconditions{UID: &p.UID}, crclient.GracePeriodSeconds(0)))
			if get(t, c, "team-a", "a") != nil {
				t.Error("it is still there")
			}
		},
		"the last finalizer": func(t *testing.T, _ *world, c crclient.Client) {
			p := podOf("team-a", "held")
			p.Finalizers = []string{"example.com/held"}
			must(t, c.Create(t.Context(), p))
			must(t, c.Delete(t.Context(), p, crclient.GracePeriodSeconds(0)))
			held := get(t, c, "team-a", "held")
			if held == nil || held.DeletionTimestamp == nil {
				t.Fatalf("got %v, want a Pod that is being deleted", held)
			}
			held.Finalizers = nil
			must(t, c.Update(t.Context(), held))
			if get(t, c, "team-a", "held") != nil {
				t.Error("it is still there")
			}
		},
		"delete all": func(t *testing.T, _ *world, c crclient.Client) {
			must(t, c.Create(t.Context(), podOf("team-a", "other")))
			must(t, c.DeleteAllOf(t.Context(), &corev1.Pod{}, crclient.InNamespace("team-a"), crclient.MatchingLabels{"app": "web"}, crclient.GracePeriodSeconds(0)))
			if n := count(t, c); n != 2 { // "other", and that of team-b
				t.Errorf("%d Pods, want 2", n)
			}
		},
		"other views of the kind": func(t *testing.T, _ *world, c crclient.Client) {
			must(t, c.Create(t.Context(), podOf("team-a", "new")))
			must(t, c.Get(t.Context(), keyOf("team-a", "new"), metadataOf(podKind)))
			u := unstructuredOf(podKind)
			u.SetNamespace("team-a")
			u.SetName("third")
			must(t, c.Create(t.Context(), u))
			if get(t, c, "team-a", "third") == nil {
				t.Error("it is not there")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, crcache.Options{}, test)
		})
	}
}

func TestReadsSeeWritesInEachNamespaceWithASettingOfItsOwn(t *testing.T) {
	namespaces := map[string]crcache.Config{"team-a": {}, "team-b": {LabelSelector: selector(t, "app=web")}}
	withClient(t, crcache.Options{DefaultNamespaces: namespaces}, func(t *testing.T, _ *world, c crclient.Client) {
		for _, namespace := range []string{"team-a", "team-b"} {
			p := podOf(namespace, "new")
			p.Labels = map[string]string{"app": "web"}
			must(t, c.Create(t.Context(), p))
			if get(t, c, namespace, "new") == nil {
				t.Errorf("the Pod of %s is not there", namespace)
			}
		}
		if n := count(t, c); n != 5 {
			t.Errorf("%d Pods, want 5", n)
		}
		must(t, c.Create(t.Context(), podOf("team-c", "new"))) // which the cache does not have
		if n := count(t, c); n != 5 {
			t.Errorf("%d Pods, want 5", n)
		}
	})
}

// The informer gets no event for such an object, and no version that it could wait for.
func TestReadsDoNotWaitForObjectsThatTheCacheDoesNotSelect(t *testing.T) {
	for name, config := range map[string]crcache.Options{
		"by labels": {DefaultLabelSelector: selector(t, "app=web")},
		"by fields": {DefaultFieldSelector: fields.OneTermEqualSelector("spec.nodeName", "")},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, config, func(t *testing.T, _ *world, c crclient.Client) {
				p := podOf("team-a", "new")
				p.Spec.NodeName = "node-1"
				must(t, c.Create(t.Context(), p))
				if get(t, c, "team-a", "new") != nil {
					t.Error("it is there")
				}
				leaves := get(t, c, "team-a", "a")
				leaves.Labels, leaves.Spec.NodeName = nil, "node-1"
				must(t, c.Update(t.Context(), leaves))
				if get(t, c, "team-a", "a") != nil {
					t.Error("it is still there")
				}
			})
		})
	}
}

func TestReadsDoNotWaitForOtherObjectsNorForRefusedWrites(t *testing.T) {
	withClient(t, crcache.Options{}, func(t *testing.T, w *world, c crclient.Client) {
		w.api.Faults.HoldWatches(true)
		must(t, c.Create(t.Context(), podOf("team-a", "new")))
		start := time.Now()
		get(t, c, "team-a", "a")
		count(t, c, crclient.InNamespace("team-b"))
		var nodes corev1.NodeList
		must(t, c.List(t.Context(), &nodes))

		stale := get(t, c, "team-a", "b")
		stale.ResourceVersion = "1"
		must(t, c.Update(t.Context(), stale), apierrors.IsConflict)
		must(t, c.Create(t.Context(), podOf("team-a", "b")), apierrors.IsAlreadyExists)
		must(t, c.Delete(t.Context(), podOf("team-b", "none")), apierrors.IsNotFound)
		get(t, c, "team-a", "b")
		get(t, c, "team-b", "none")
		must(t, c.Get(t.Context(), keyOf("team-a", "new"), &corev1.Pod{}, crclient.DisableReadYourWritesConsistency), apierrors.IsNotFound)
		must(t, c.Create(t.Context(), podOf("team-b", "dry"), crclient.DryRunAll))
		must(t, c.Create(t.Context(), podOf("team-b", "ignored"), crclient.DisableReadYourWritesConsistency))
		count(t, c, crclient.InNamespace("team-b"))
		if waited := time.Since(start); waited != 0 { // of the bubble
			t.Errorf("a read waited %s", waited)
		}
	})
}

// The answer of the first write of a subresource does not have the version of the Pod, and that of the second is lost.
func TestAWriteThatNoReadShallWaitFor(t *testing.T) {
	ignored := crclient.DeleteAllOfOptions{DeleteOptions: crclient.DeleteOptions{DisableReadYourWritesConsistency: true}}
	ignoredAsList := crclient.DeleteAllOfOptions{ListOptions: crclient.ListOptions{DisableReadYourWritesConsistency: true}}
	for name, write := range map[string]func(t *testing.T, w *world, c crclient.Client) error{
		"a subresource without an answer": func(t *testing.T, w *world, c crclient.Client) error {
			w.api.Faults.RefuseNext(1, "create", &apierrors.NewServiceUnavailable("later").ErrStatus)
			err := c.SubResource("eviction").Create(t.Context(), podOf("team-a", "a"), &policyv1.Eviction{}, crclient.DisableReadYourWritesConsistency)
			if !apierrors.IsServiceUnavailable(err) {
				return fmt.Errorf("the eviction got an answer: %w", err)
			}
			return nil
		},
		"a subresource with an answer": func(t *testing.T, w *world, c crclient.Client) error {
			w.api.Faults.RefuseNext(1, "create", &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
			return c.SubResource("eviction").Create(t.Context(), podOf("team-a", "a"), &policyv1.Eviction{}, crclient.DisableReadYourWritesConsistency)
		},
		"DeleteAllOf": func(t *testing.T, _ *world, c crclient.Client) error {
			return c.DeleteAllOf(t.Context(), &corev1.Pod{}, crclient.InNamespace("team-a"), crclient.GracePeriodSeconds(0), &ignored)
		},
		"DeleteAllOf, as an option of its list": func(t *testing.T, _ *world, c crclient.Client) error {
			return c.DeleteAllOf(t.Context(), &corev1.Pod{}, crclient.InNamespace("team-a"), crclient.GracePeriodSeconds(0), &ignoredAsList)
		},
		"Update": func(t *testing.T, _ *world, c crclient.Client) error {
			return c.Update(t.Context(), get(t, c, "team-a", "a"), crclient.DisableReadYourWritesConsistency)
		},
		"Delete": func(t *testing.T, _ *world, c crclient.Client) error {
			return c.Delete(t.Context(), podOf("team-a", "a"), crclient.DisableReadYourWritesConsistency)
		},
		"the status": func(t *testing.T, _ *world, c crclient.Client) error {
			return c.Status().Update(t.Context(), get(t, c, "team-a", "a"), crclient.DisableReadYourWritesConsistency)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, crcache.Options{}, func(t *testing.T, w *world, c crclient.Client) {
				w.api.Faults.HoldWatches(true)
				w.api.Forget()
				must(t, write(t, w, c))
				start := time.Now()
				get(t, c, "team-a", "a")
				count(t, c)
				if waited := time.Since(start); waited != 0 {
					t.Errorf("the reads waited %s", waited)
				}
				if n := controllerruntime.UnseenWrites(c); n != 0 {
					t.Errorf("the client has noted %d writes", n)
				}
				for _, q := range w.api.Requests() {
					if q.Verb == "get" || q.Verb == "list" {
						t.Errorf("the client asked the server: %s", q.String())
					}
				}
			})
		})
	}
}

func TestAReadThatWaitsEnds(t *testing.T) {
	withClient(t, crcache.Options{}, func(t *testing.T, w *world, c crclient.Client) {
		w.api.Faults.HoldWatches(true)
		must(t, c.Create(t.Context(), podOf("team-a", "new")))
		key := keyOf("team-a", "new")
		bounded, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Get(bounded, key, &corev1.Pod{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: %v", err)
		}
		if err := c.Get(t.Context(), key, &corev1.Pod{}); !apierrors.IsTimeout(err) {
			t.Errorf("with one that does not: %v", err)
		}
		w.api.Faults.HoldWatches(false)
		if get(t, c, "team-a", "new") == nil {
			t.Error("it is not there")
		}
	})
}

func TestReadsAfterAWriteWithoutAnswer(t *testing.T) {
	for _, c := range []struct {
		name, verb string
		write      func(t *testing.T, c crclient.Client) error
		seen       func(t *testing.T, c crclient.Client) bool
	}{
		{"create", "create",
			func(t *testing.T, c crclient.Client) error { return c.Create(t.Context(), podOf("team-a", "new")) },
			func(t *testing.T, c crclient.Client) bool { return get(t, c, "team-a", "new") != nil }},
		{"update", "update",
			func(t *testing.T, c crclient.Client) error {
				p := get(t, c, "team-a", "a")
				p.Annotations = map[string]string{"n": "1"}
				return c.Update(t.Context(), p)
			},
			func(t *testing.T, c crclient.Client) bool { return get(t, c, "team-a", "a").Annotations["n"] == "1" }},
		{"apply", "patch",
			func(t *testing.T, c crclient.Client) error {
				config := corev1apply.Pod("a", "team-a").WithAnnotations(map[string]string{"n": "1"})
				return c.Apply(t.Context(), config, crclient.FieldOwner("test"))
			},
			func(t *testing.T, c crclient.Client) bool { return get(t, c, "team-a", "a").Annotations["n"] == "1" }},
		{"delete", "delete",
			func(t *testing.T, c crclient.Client) error {
				return c.Delete(t.Context(), podOf("team-a", "a"), crclient.GracePeriodSeconds(0))
			},
			func(t *testing.T, c crclient.Client) bool { return get(t, c, "team-a", "a") == nil }},
		{"delete all", "deletecollection",
			func(t *testing.T, c crclient.Client) error {
				return c.DeleteAllOf(t.Context(), &corev1.Pod{}, crclient.InNamespace("team-a"), crclient.GracePeriodSeconds(0))
			},
			func(t *testing.T, c crclient.Client) bool { return count(t, c) == 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			withClient(t, crcache.Options{}, func(t *testing.T, w *world, own crclient.Client) {
				w.api.Faults.LoseNext(1, c.verb)
				if err := c.write(t, own); err == nil {
					t.Fatal("the write got an answer")
				}
				if !c.seen(t, own) {
					t.Error("the read does not have the write")
				}
			})
		})
	}
}

// The write did not reach the server.
func TestReadsAfterAWriteThatWasLost(t *testing.T) {
	withClient(t, crcache.Options{}, func(t *testing.T, w *world, c crclient.Client) {
		unavailable := &apierrors.NewServiceUnavailable("later").ErrStatus
		w.api.Faults.RefuseNext(1, "create", unavailable)
		if err := c.Create(t.Context(), podOf("team-a", "new")); err == nil {
			t.Fatal("the write got an answer")
		}
		if get(t, c, "team-a", "new") != nil {
			t.Error("it is there")
		}
		w.api.Faults.RefuseNext(1, "delete", unavailable)
		if err := c.Delete(t.Context(), podOf("team-a", "a")); err == nil {
			t.Fatal("the deletion got an answer")
		}
		if get(t, c, "team-a", "a") == nil {
			t.Error("it is not there")
		}
	})
}

func TestAnInformerOfLaterHasTheWritesOfBefore(t *testing.T) {
	withClient(t, crcache.Options{}, func(t *testing.T, _ *world, c crclient.Client) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		must(t, c.Create(t.Context(), node))
		must(t, c.Get(t.Context(), keyOf("", "n"), &corev1.Node{}))
		must(t, c.Delete(t.Context(), node))
		if err := c.Get(t.Context(), keyOf("", "n"), &corev1.Node{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	})
}

// What a client notes of its writes does not grow with them, whether or not anything reads the objects.
func TestAThousandWritesThatNoReadWaitsFor(t *testing.T) {
	withClient(t, crcache.Options{}, func(t *testing.T, _ *world, c crclient.Client) {
		for range 20 {
			for range 50 {
				p := podOf("team-a", "")
				p.GenerateName = "new-"
				must(t, c.Create(t.Context(), p))
			}
			time.Sleep(2 * lag) // of the bubble
			if n := controllerruntime.UnseenWrites(c); n > 200 {
				t.Fatalf("the client has noted %d writes", n)
			}
		}
		if n := count(t, c); n != 1003 {
			t.Errorf("%d Pods, want 1003", n)
		}
	})
}

func TestOptionsOfTheClient(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		other := crclient.Options{Mapper: w.mapper, Cache: &crclient.CacheOptions{Reader: struct{ crclient.Reader }{w.cache}}}
		if _, err := controllerruntime.NewClient(w.api.Config(), other); err == nil {
			t.Error("a reader that is no cache of NewCache is taken")
		}
		if _, err := controllerruntime.NewClient(w.api.Config(), crclient.Options{Mapper: w.mapper}); err != nil {
			t.Errorf("without a reader: %v", err)
		}
	})
	dry := true
	withClientOf(t, crcache.Options{}, crclient.Options{DryRun: &dry}, func(t *testing.T, _ *world, c crclient.Client) {
		must(t, c.Create(t.Context(), podOf("team-a", "new")))
		if get(t, c, "team-a", "new") != nil {
			t.Error("a dry run has made it")
		}
	})
	live := crclient.Options{Cache: &crclient.CacheOptions{DisableFor: []crclient.Object{&corev1.Pod{}}}}
	withClientOf(t, crcache.Options{}, live, func(t *testing.T, w *world, c crclient.Client) {
		w.api.Faults.HoldWatches(true)
		must(t, c.Create(t.Context(), podOf("team-a", "new")))
		if get(t, c, "team-a", "new") == nil {
			t.Error("a read from the server does not have it")
		}
	})
}

// Several workers of a controller share the client.
func TestWritersAndReadersAtOnce(t *testing.T) {
	withClient(t, crcache.Options{}, func(t *testing.T, _ *world, c crclient.Client) {
		done := make(chan string)
		names := []string{"u", "v", "w", "x"}
		for _, name := range names {
			go func() {
				for range 20 {
					p := podOf("team-a", name)
					if err := c.Create(t.Context(), p); err != nil {
						done <- err.Error()
						return
					}
					if err := c.Get(t.Context(), keyOf("team-a", name), p); err != nil {
						done <- err.Error()
						return
					}
					if err := c.Delete(t.Context(), p, crclient.GracePeriodSeconds(0)); err != nil {
						done <- err.Error()
						return
					}
					if err := c.Get(t.Context(), keyOf("team-a", name), p); !apierrors.IsNotFound(err) {
						done <- "after its deletion: " + p.ResourceVersion
						return
					}
				}
				done <- ""
			}()
		}
		for range names {
			if trouble := <-done; trouble != "" {
				t.Error(trouble)
			}
		}
		synctest.Wait()
	})
}
