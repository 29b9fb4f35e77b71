// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func clientOf(t *testing.T, server *fakeapi.Server) *client.Client {
	t.Helper()
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The informer still has the old namespace. The server has a new one under its name.
func TestANamespaceThatWasMadeAnewIsLeftAlone(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	spec := corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"})
	defer server.Close()
	old := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "old", DeletionTimestamp: &now, Finalizers: []string{"x"}}, Spec: spec}
	if err := server.Add(old); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, server.Server)
	factory := cache.NewFactory(c, nil)
	r := &reconciler{
		namespaces: cache.Informer[*corev1.Namespace](factory),
		discover: func(context.Context) ([]client.Served, error) {
			t.Error("what is in a new namespace is looked for")
			return nil, nil
		},
	}
	ctx, stop := context.WithTimeout(t.Context(), controlplanetest.Patience)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = factory.Run(ctx) }()
	defer func() { stop(); <-ended }()
	if err := r.namespaces.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	server.HoldWatches(true)
	server.Remove(object.Key{Name: "team-a"})
	if err := server.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "new"}, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	result, err := r.reconcile(ctx, controller.Request{Key: object.Key{Name: "team-a"}})
	if err != nil || result.After != 0 {
		t.Errorf("%v, %v, want that nothing is done", result, err)
	}
	if seen, err := r.namespaces.Get(object.Key{Name: "team-a"}); err != nil || seen.DeletionTimestamp == nil {
		t.Errorf("the informer has %v (%v), and the test wants it to lag", seen, err)
	}
}
