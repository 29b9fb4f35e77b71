// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Each Pod enqueues its Deployment, whether or not it is the last one: the informers of
// Pods and of ReplicaSets may be behind each other, and the run sees what is left.
func TestEveryPodThatGoesEnqueuesADeploymentThatRecreatesAndNoOther(t *testing.T) {
	for _, test := range []struct {
		name string
		d    *appsv1.Deployment
		want []object.Key
	}{
		{"Recreate", recreating(2), []object.Key{{Namespace: "team-a", Name: "web"}, {Namespace: "team-a", Name: "web"}}},
		{"RollingUpdate", deployment(2), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.New()
				server.Serve(kind)
				server.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true})
				server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
				api, err := client.New(server.Config())
				if err != nil {
					t.Fatal(err)
				}
				d := create(t, api, test.d)
				old := create(t, api, set(d, 1, 2))
				names := []string{"first", "second"}
				for _, name := range names {
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
						Namespace: old.Namespace, Name: name,
						OwnerReferences: []metav1.OwnerReference{owned.By(old, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
					}}
					create(t, api, pod)
				}

				factory := cache.NewFactory(api, slog.New(slog.DiscardHandler))
				r := &reconciler{
					deployments: cache.Informer[*appsv1.Deployment](factory),
					sets:        cache.Informer[*appsv1.ReplicaSet](factory),
					pods:        cache.Informer[*corev1.Pod](factory),
				}
				var enqueued []object.Key
				if _, err := r.pods.AddHandler(func(e cache.Event[*corev1.Pod]) {
					if predicate.Gone(e) {
						r.waitsFor(e.Old, func(key object.Key) { enqueued = append(enqueued, key) })
					}
				}, cache.HandlerOptions{Name: t.Name()}); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- factory.Run(ctx) }()
				defer func() {
					stop()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				for _, name := range names {
					if err := client.For[*corev1.Pod](api).Delete(t.Context(), object.Key{Namespace: old.Namespace, Name: name}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if !slices.Equal(enqueued, test.want) {
					t.Errorf("enqueued %v, want %v", enqueued, test.want)
				}
			})
		})
	}
}

// create returns an object as the server has it.
func create[T object.Object](t *testing.T, api *client.Client, o T) T {
	t.Helper()
	o.SetResourceVersion("")
	made, err := client.For[T](api).Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
