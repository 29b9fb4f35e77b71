// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// On a real API server, whose watches lag, each read has the writes before it, and a read without the
// client does not.
func TestReadsOfARealServerSeeTheWritesOfTheirClient(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	one, other := cluster.Namespace(t), cluster.Namespace(t)
	slow := rest.CopyConfig(cluster.Config)
	slow.Wrap(func(next http.RoundTripper) http.RoundTripper { return lagging{next} })
	cached, err := controllerruntime.NewCache(slow, crcache.Options{DefaultNamespaces: map[string]crcache.Config{one: {}, other: {}}})
	must(t, err)
	c, err := controllerruntime.NewClient(cluster.Config, crclient.Options{Cache: &crclient.CacheOptions{Reader: cached}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cached.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if _, err := cached.GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}

	for _, namespace := range []string{one, other} {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", Labels: map[string]string{"of": "test"}}, Data: map[string]string{"n": "0"}}
		key := crclient.ObjectKeyFromObject(m)
		must(t, c.Create(ctx, m))
		if err := c.Get(ctx, key, new(corev1.ConfigMap), crclient.DisableReadYourWritesConsistency); !apierrors.IsNotFound(err) {
			t.Errorf("a read that does not wait: %v; the watch does not lag", err)
		}
		for _, n := range []string{"1", "2", "3"} {
			var read corev1.ConfigMap
			must(t, c.Get(ctx, key, &read))
			if read.ResourceVersion != m.ResourceVersion {
				t.Errorf("a read has version %s, want %s", read.ResourceVersion, m.ResourceVersion)
			}
			read.Data["n"] = n
			must(t, c.Update(ctx, &read)) // it would be a conflict for a stale object
			m = &read
		}
		must(t, c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "second", Labels: m.Labels}}))
		listed := func() (n int) {
			var list corev1.ConfigMapList
			must(t, c.List(ctx, &list, crclient.InNamespace(namespace), crclient.MatchingLabels{"of": "test"}))
			return len(list.Items)
		}
		if n := listed(); n != 2 {
			t.Errorf("%d ConfigMaps, want 2", n)
		}
		must(t, c.Delete(ctx, m))
		if n := listed(); n != 1 {
			t.Errorf("%d ConfigMaps after a deletion, want 1", n)
		}
		must(t, c.DeleteAllOf(ctx, &corev1.ConfigMap{}, crclient.InNamespace(namespace), crclient.MatchingLabels{"of": "test"}))
		if n := listed(); n != 0 {
			t.Errorf("%d ConfigMaps after the deletion of all, want none", n)
		}
	}

	// The answer of an eviction does not have the version of the Pod.
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: one, Name: "p", Finalizers: []string{"example.com/held"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	must(t, c.Get(ctx, keyOf(one, "none"), new(corev1.Pod)), apierrors.IsNotFound)
	must(t, c.Create(ctx, p))
	must(t, c.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{}))
	var evicted corev1.Pod
	must(t, c.Get(ctx, crclient.ObjectKeyFromObject(p), &evicted))
	if evicted.DeletionTimestamp == nil {
		t.Error("a read after an eviction has a Pod that is not being deleted")
	}
	must(t, c.Patch(ctx, p, crclient.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

// lagging delays what watches send.
type lagging struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lagging) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		answer.Body = lateBody{answer.Body}
	}
	return answer, err
}

type lateBody struct{ io.ReadCloser }

// Read returns what arrives a moment after it has arrived.
func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(lag)
	return n, err
}
