// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"fmt"
	"slices"
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
		t:      t,
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

func TestABoundClaimSaysWhetherAPodUsesIt(t *testing.T) {
	bound := func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimBound }
	condition := func(c *cluster, key object.Key) string {
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
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Defaults())
		pending := c.addClaim("pending")
		began := time.Now().Unix()
		key := c.addClaim("data", bound)
		settle()
		want := func(when, text string) {
			t.Helper()
			if got := condition(c, key); got != text {
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
		if got := condition(c, pending); got != "" {
			t.Errorf("a claim that is not bound says %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Options{OmitUnused: true})
		key := c.addClaim("data", bound)
		settle()
		if got := condition(c, key); got != "" {
			t.Errorf("with the gate off it says %q", got)
		}
	})
}
