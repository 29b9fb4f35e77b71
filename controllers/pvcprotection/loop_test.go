// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest.
type cluster struct {
	t            *testing.T
	api          *fakeapi.Server
	claims, pods *fakeapi.Resource
	claim        client.Typed[*corev1.PersistentVolumeClaim]
	pod          client.Typed[*corev1.Pod]
	lists        atomic.Int32 // of the Pods of one namespace
	writes       atomic.Int32 // of claims
}

func start(t *testing.T, o Options) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api,
		claims: api.Serve(object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true}, fakeapi.WithStatus()),
		pods:   api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}),
	}
	c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "list" && q.Key.Namespace != "" {
			c.lists.Add(1)
		}
		return nil
	})
	c.claims.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Verb == "update" {
			c.writes.Add(1)
		}
		return nil
	})
	plain, err := client.New(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	c.claim, c.pod = client.For[*corev1.PersistentVolumeClaim](plain), client.For[*corev1.Pod](plain)
	managertest.Run(t, api.Config(), managertest.Making(New, o))
	settle()
	return c
}

func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// addClaim adds a claim as admission leaves it.
func (c *cluster) addClaim(name string, change ...func(*corev1.PersistentVolumeClaim)) object.Key {
	c.t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Finalizers: []string{Finalizer}}}
	for _, f := range change {
		f(claim)
	}
	if err := c.claims.Add(claim); err != nil {
		c.t.Fatal(err)
	}
	return object.KeyOf(claim)
}

// addPod adds a Pod on a node, with claims.
func (c *cluster) addPod(name string, claims ...string) object.Key {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	if err := c.pods.Add(pod); err != nil {
		c.t.Fatal(err)
	}
	return object.KeyOf(pod)
}

func (c *cluster) delete(keys ...object.Key) {
	c.t.Helper()
	for _, key := range keys {
		if err := c.claim.Delete(c.t.Context(), key); err != nil {
			c.t.Fatal(err)
		}
	}
	settle()
}

func (c *cluster) want(when string, names ...string) {
	c.t.Helper()
	if got := c.claims.Keys(); !slices.Equal(got, names) {
		c.t.Errorf("%s there are the claims %q, want %q", when, got, names)
	}
}

func TestAClaimStaysWhileAPodUsesItAndThenGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		used, free := c.addClaim("used"), c.addClaim("free")
		pod := c.addPod("web", "used")
		settle()
		c.delete(used, free)
		c.want("while a Pod uses one", "ns/used")
		if err := c.pod.Delete(t.Context(), pod, client.GracePeriod(0)); err != nil {
			t.Fatal(err)
		}
		settle()
		c.want("after the Pod")
	})
}

// The cache may not have seen a Pod yet that the server has.
func TestAPodThatTheCacheHasNotSeenKeepsItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		key := c.addClaim("data")
		settle()
		c.pods.HoldWatches(true)
		pod := c.addPod("web", "data")
		c.delete(key)
		c.want("while the watch of Pods stands still", "ns/data")
		c.pods.HoldWatches(false)
		settle()
		c.want("when the Pod is seen", "ns/data")
		if err := c.pod.Delete(t.Context(), pod, client.GracePeriod(0)); err != nil {
			t.Fatal(err)
		}
		settle()
		c.want("after the Pod")
	})
}

// A Pod that has ended keeps its claim, and does not use it. The list for another claim has the Pod, and the cache has not.
func TestAListForOneClaimKeepsAnotherOneOfAPodThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		first, second := c.addClaim("first"), c.addClaim("second")
		settle()
		c.pods.HoldWatches(true)
		pod := c.addPod("web", "second")
		if err := fakeapi.Change(c.pods, pod, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }); err != nil {
			t.Fatal(err)
		}
		c.claims.HoldWatches(true) // until both are being deleted
		c.delete(first, second)
		c.claims.HoldWatches(false)
		settle()
		c.want("with the Pod", "ns/second")
	})
}

// A Pod that ends between the list and the run of its claim does not keep the claim for ever.
func TestAListThatIsOutOfDateKeepsNoClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		a, b := c.addClaim("a"), c.addClaim("b")
		pod := c.addPod("web", "b")
		settle()
		c.delete(b, a) // the list for a shows the Pod of b
		c.want("while a Pod uses one", "ns/b")
		lists := c.lists.Load()
		if err := c.pod.Delete(t.Context(), pod, client.GracePeriod(0)); err != nil {
			t.Fatal(err)
		}
		settle()
		c.want("after the Pod")
		if n := c.lists.Load() - lists; n != 1 {
			t.Errorf("%d lists", n)
		}
	})
}

func TestManyClaimsOfANamespaceCostFewLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		var keys []object.Key
		for i := range 100 {
			keys = append(keys, c.addClaim(fmt.Sprint("c", i), func(claim *corev1.PersistentVolumeClaim) {
				claim.Finalizers = append(claim.Finalizers, "example.com/held")
			}))
		}
		pod := c.addPod("web", func() (names []string) {
			for _, key := range keys {
				names = append(names, key.Name)
			}
			return names
		}()...)
		settle()
		c.delete(keys...)
		lists := c.lists.Load()
		if err := c.pod.Delete(t.Context(), pod, client.GracePeriod(0)); err != nil { // enqueues all of them
			t.Fatal(err)
		}
		settle()
		for _, key := range keys {
			if f := c.claims.Get(key).GetFinalizers(); !slices.Equal(f, []string{"example.com/held"}) {
				t.Fatalf("%s has the finalizers %q", key, f)
			}
		}
		if n := c.lists.Load() - lists; n != 1 {
			t.Errorf("100 claims cost %d lists", n)
		}
	})
}

func TestAClaimWithoutTheFinalizerGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		key := c.addClaim("old", func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = []string{"example.com/x"} })
		settle()
		if f := c.claims.Get(key).GetFinalizers(); !slices.Equal(f, []string{"example.com/x", Finalizer}) {
			t.Errorf("its finalizers are %q", f)
		}
		c.delete(key)
		if f := c.claims.Get(key).GetFinalizers(); !slices.Equal(f, []string{"example.com/x"}) {
			t.Errorf("deleted, its finalizers are %q", f)
		}
	})
}

func bound(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimBound }

// condition returns the conditions of a claim, each as "type status reason second".
func (c *cluster) condition(key object.Key) string {
	c.t.Helper()
	claim, err := c.claim.Get(c.t.Context(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	text := ""
	for _, x := range claim.Status.Conditions {
		text += fmt.Sprint(x.Type, " ", x.Status, " ", x.Reason, " ", x.LastTransitionTime.Unix())
	}
	return text
}

func (c *cluster) removePods(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := c.pod.Delete(c.t.Context(), object.Key{Namespace: "ns", Name: name}, client.GracePeriod(0)); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestABoundClaimSaysWhetherAPodUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		pending := c.addClaim("pending")
		began := time.Now().Unix()
		key := c.addClaim("data", bound)
		settle()
		want := func(when, text string) {
			t.Helper()
			if got := c.condition(key); got != text {
				t.Errorf("%s: %q, want %q", when, got, text)
			}
		}
		want("without Pods", fmt.Sprint("Unused True NoPodsUsingPVC ", began))
		began = time.Now().Unix()
		pod := c.addPod("web", "data")
		settle()
		want("with a Pod", fmt.Sprint("Unused False PodUsingPVC ", began))
		writes := c.writes.Load()
		c.addPod("second", "data")
		settle()
		if n := c.writes.Load() - writes; n != 0 {
			t.Errorf("a second Pod costs %d writes", n)
		}
		for _, key := range []object.Key{pod, {Namespace: "ns", Name: "second"}} {
			if err := c.pod.Delete(t.Context(), key, client.GracePeriod(0)); err != nil {
				t.Fatal(err)
			}
		}
		began = time.Now().Unix()
		settle()
		want("after the Pods", fmt.Sprint("Unused True NoPodsUsingPVC ", began))
		if got := c.condition(pending); got != "" {
			t.Errorf("a claim that is not bound says %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Options{OmitUnused: true})
		key := c.addClaim("data", bound)
		settle()
		if got := c.condition(key); got != "" {
			t.Errorf("with the gate off it says %q", got)
		}
	})
}

// A tool may delete claims that have been unused. The cache may not have seen a Pod yet that the server has.
func TestAClaimOfAPodThatTheCacheHasNotSeenIsNotUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		c.pods.HoldWatches(true)
		c.addPod("web", "data")
		began := time.Now().Unix()
		key := c.addClaim("data", bound)
		settle()
		used := fmt.Sprint("Unused False PodUsingPVC ", began)
		if got := c.condition(key); got != used {
			t.Errorf("while the watch of Pods stands still: %q, want %q", got, used)
		}
		c.pods.HoldWatches(false)
		settle()
		// A Pod takes the place of another one, and the cache shows the end of the first alone.
		c.pods.LagWatches(func() time.Duration { return 10 * time.Second })
		c.removePods("web")
		time.Sleep(2 * time.Second)
		c.addClaim("other", bound) // costs a list, which shows neither Pod
		time.Sleep(3 * time.Second)
		c.addPod("web", "data")
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if got := c.condition(key); got != used {
			t.Errorf("before the cache shows the second Pod: %q, want %q", got, used)
		}
		settle()
		if got := c.condition(key); got != used {
			t.Errorf("after the cache shows it: %q, want %q", got, used)
		}
	})
}

// Between two tries to write the condition there may be a new Pod, and the cache may not have seen it.
func TestAListFromBeforeAWriteThatFailedDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		c.claims.RefuseNext(12, "update", fakeapi.Unavailable(0)) // for about twenty seconds
		key := c.addClaim("data", bound)                          // a list shows no Pod, and the write fails
		time.Sleep(time.Second)
		synctest.Wait()
		c.pods.HoldWatches(true)
		c.addPod("web", "data")
		settle()
		if got := c.condition(key); !strings.HasPrefix(got, "Unused False PodUsingPVC ") {
			t.Errorf("a claim of a Pod that was created after a write that failed says %q", got)
		}
		if n := c.lists.Load(); n < 2 {
			t.Errorf("%d lists, want one before the Pod and one after it", n)
		}
	})
}

func TestManyClaimsThatBecomeUnusedCostOneList(t *testing.T) {
	for name, end := range map[string]func(*cluster){
		"is gone": func(c *cluster) { c.removePods("web") },
		"has succeeded": func(c *cluster) {
			if err := fakeapi.Change(c.pods, object.Key{Namespace: "ns", Name: "web"}, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }); err != nil {
				c.t.Fatal(err)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, Defaults())
			var names []string
			for i := range 100 {
				names = append(names, fmt.Sprint("c", i))
			}
			c.addPod("web", names...)
			c.addPod("other", "elsewhere")
			settle()
			for _, name := range names {
				c.addClaim(name, bound)
			}
			c.addClaim("elsewhere", bound)
			settle()
			if n := c.lists.Load(); n != 0 {
				t.Errorf("claims with a Pod cost %d lists", n)
			}
			end(c)
			settle()
			for _, name := range names {
				if got := c.condition(object.Key{Namespace: "ns", Name: name}); !strings.HasPrefix(got, "Unused True NoPodsUsingPVC ") {
					t.Fatalf("%s, whose Pod %s, says %q", name, name, got)
				}
			}
			if n := c.lists.Load(); n != 1 {
				t.Errorf("100 claims whose Pod %s cost %d lists", name, n)
			}
			if err := fakeapi.Change(c.claims, object.Key{Namespace: "ns", Name: "c0"}, func(claim *corev1.PersistentVolumeClaim) { claim.Labels = map[string]string{"a": "b"} }); err != nil {
				t.Fatal(err)
			}
			settle()
			if n := c.lists.Load(); n != 1 {
				t.Errorf("a claim that says already that it is unused costs %d lists more", n-1)
			}
		})
	}
}

// The claims of a cluster that has just been upgraded do not have the condition.
func TestClaimsOfManyNamespacesCostAListForEachNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Options{OmitUnused: true})
		for i := range 300 {
			c.addClaim(fmt.Sprint("c", i), bound, func(claim *corev1.PersistentVolumeClaim) { claim.Namespace = fmt.Sprint("ns-", i%10) })
		}
		settle()
		managertest.Run(t, c.api.Config(), managertest.Making(New, Defaults()))
		settle()
		if lists, writes := c.lists.Load(), c.writes.Load(); lists != 10 || writes != 300 {
			t.Errorf("300 claims in 10 namespaces cost %d lists and %d writes", lists, writes)
		}
	})
}

// The watch breaks, and a Pod is created and deleted before the next one. The cache shows nothing of it.
func TestAPodThatTheCacheNeverShowsHoldsItsClaimNoLongerThanItExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		kept, marked := c.addClaim("kept"), c.addClaim("marked", bound)
		settle()
		c.pods.HoldWatches(true)
		c.addPod("web", "kept", "marked")
		c.delete(kept)
		if err := fakeapi.Change(c.claims, marked, func(claim *corev1.PersistentVolumeClaim) { claim.Status.Conditions = nil }); err != nil {
			t.Fatal(err)
		}
		settle()
		c.want("with the Pod", "ns/kept", "ns/marked")
		if got := c.condition(marked); !strings.HasPrefix(got, "Unused False PodUsingPVC ") {
			t.Errorf("with the Pod the claim says %q", got)
		}
		c.removePods("web")
		c.api.Compact(c.api.ResourceVersion())
		c.api.CutConnections()
		settle() // the informer lists again
		c.pods.HoldWatches(false)
		settle()
		c.want("after the Pod", "ns/marked")
		if got := c.condition(marked); !strings.HasPrefix(got, "Unused True NoPodsUsingPVC ") {
			t.Errorf("after the Pod the claim says %q", got)
		}
	})
}
