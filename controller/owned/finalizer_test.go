// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The finalizer comes with the reference and goes with it, in one request each. Others stay.
func TestAClaimAddsAndRemovesItsFinalizerWithTheReference(t *testing.T) {
	inMemory(t, func(t *testing.T, server *fakeapi.Resource, pods cache.SharedInformer[*corev1.Pod]) {
		owner := shop("web")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", Labels: map[string]string{"app": "web"}, Finalizers: []string{"example.com/other"},
		}}
		if err := server.Add(pod); err != nil {
			t.Fatal(err)
		}
		claim := func() *corev1.Pod {
			t.Helper()
			synctest.Wait()
			c := owned.Claim[*corev1.Pod]{
				Server: pods.Server(), Owner: owner, Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Selector: webs, Finalizer: "example.com/count",
				Live: func(context.Context) (object.Object, error) { return owner, nil },
			}
			before := len(server.Calls())
			if _, err := c.Of(t.Context(), pods.All()); err != nil {
				t.Fatal(err)
			}
			if calls := server.Calls()[before:]; len(calls) != 1 {
				t.Errorf("the requests are %v", calls)
			}
			now, err := fakeapi.Read[*corev1.Pod](server, podKey)
			if err != nil {
				t.Fatal(err)
			}
			return now
		}
		if now := claim(); metav1.GetControllerOf(now) == nil || !slices.Contains(now.Finalizers, "example.com/count") || len(now.Finalizers) != 2 {
			t.Errorf("adopted: %+v", now.ObjectMeta)
		}
		if err := fakeapi.Change(server, podKey, func(pod *corev1.Pod) { pod.Labels = nil }); err != nil {
			t.Fatal(err)
		}
		if now := claim(); metav1.GetControllerOf(now) != nil || !slices.Equal(now.Finalizers, []string{"example.com/other"}) {
			t.Errorf("released: %+v", now.ObjectMeta)
		}
	})
}
