// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// An informer of a type that is known at run time is that of the type.
func TestInformerOfARunTimeTypeSharesTheTypesInformer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "a")
		typed := cache.Informer[*corev1.Pod](w.factory)
		untyped := cache.InformerOf(w.factory, &corev1.Pod{})
		if typed.Handle() != untyped.Handle() {
			t.Error("the two informers differ")
		}
		var seen []object.Object
		if _, err := untyped.AddHandler(func(e cache.Event[object.Object]) {
			o, err := e.New.Object()
			if err != nil {
				t.Error(err)
			}
			seen = append(seen, o)
		}, cache.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		defer w.run(t)()
		one, err := untyped.Get(object.Key{Namespace: "team-a", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		pod, err := typed.Get(object.Key{Namespace: "team-a", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if one != object.Object(pod) || len(seen) != 1 || seen[0] != one {
			t.Errorf("readers of one state have %p, %p and %v", one, pod, seen)
		}
	})
}

// Objects of metadata have the type that was asked for, although an informer of whole objects
// could serve for their content.
func TestInformerOfMetadataHasMetadata(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "a")
		whole := cache.Informer[*corev1.Pod](w.factory)
		metadata := cache.InformerOf(w.factory, &metav1.PartialObjectMetadata{}, cache.OfKind(managedPods))
		if whole.Handle() == metadata.Handle() {
			t.Error("an informer of whole objects serves for metadata of an exact type")
		}
		defer w.run(t)()
		o, err := metadata.Get(object.Key{Namespace: "team-a", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := o.(*metav1.PartialObjectMetadata); !ok {
			t.Errorf("have a %T", o)
		}
	})
}

// JSON has apiVersion and kind, which typed objects of client-go's decoders have not.
func TestWithoutTypeMetaLeavesThemEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		deployments := server.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true})
		if err := deployments.Add(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}); err != nil {
			t.Fatal(err)
		}
		config := rest.CopyConfig(server.Config())
		config.ContentType = "application/json"
		c, err := client.New(config)
		if err != nil {
			t.Fatal(err)
		}
		factory := cache.NewFactory(c, nil)
		with := cache.Informer[*appsv1.Deployment](factory)
		without := cache.Informer[*appsv1.Deployment](factory, cache.WithoutTypeMeta())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- factory.Run(ctx) }()
		synctest.Wait()
		for informer, want := range map[cache.SharedInformer[*appsv1.Deployment]]metav1.TypeMeta{
			with: {Kind: "Deployment", APIVersion: "apps/v1"}, without: {},
		} {
			o, err := informer.Get(object.Key{Namespace: "team-a", Name: "web"})
			if err != nil {
				t.Fatal(err)
			}
			if o.TypeMeta != want || o.Name != "web" {
				t.Errorf("have %+v, want %+v", o.TypeMeta, want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A handler has ended when no call of it runs and none will begin.
func TestEndedIsClosedAfterTheLastCall(t *testing.T) {
	ended := func(r *cache.Registration) bool {
		synctest.Wait()
		select {
		case <-r.Ended():
			return true
		default:
			return false
		}
	}
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "a")
		pods := cache.Informer[*corev1.Pod](w.factory)
		add := func(h cache.Handler[*corev1.Pod]) *cache.Registration {
			r, err := pods.AddHandler(h, cache.HandlerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		nothing := func(cache.Event[*corev1.Pod]) {}
		early := add(nothing)
		if early.Remove(); !ended(early) {
			t.Error("a handler that was removed before the informer ran has not ended")
		}
		goOn := make(chan struct{})
		slow, quick := add(func(cache.Event[*corev1.Pod]) { <-goOn }), add(nothing)
		stop := w.run(t)
		if slow.Remove(); ended(slow) {
			t.Error("a handler has ended in the middle of a call")
		}
		if close(goOn); !ended(slow) {
			t.Error("a handler that was removed and has returned has not ended")
		}
		if ended(quick) {
			t.Error("a handler has ended that waits for events")
		}
		if stop(); !ended(quick) {
			t.Error("a handler has not ended with its informer")
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		pods := cache.Informer[*corev1.Pod](w.factory)
		r, err := pods.AddHandler(func(cache.Event[*corev1.Pod]) {}, cache.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pods.Release(); !ended(r) {
			t.Error("a handler has not ended with an informer that never ran")
		}
	})
}

// Each failure to watch is reported, though the log has one line of them.
func TestOnTroubleGetsEachFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Faults.RefuseNext(3, "watch", fakeapi.Unavailable(1))
		var failures []error
		pods := cache.Informer[*corev1.Pod](w.factory, cache.OnTrouble(func(err error) { failures = append(failures, err) }))
		if other := cache.Informer[*corev1.Pod](w.factory); other.Handle() == pods.Handle() {
			t.Error("an informer with a function for its failures is shared")
		} else {
			other.Release()
		}
		defer w.run(t)()
		if err := pods.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(failures) != 3 || !apierrors.IsServiceUnavailable(failures[0]) {
			t.Errorf("the failures are %v", failures)
		}
	})
}
