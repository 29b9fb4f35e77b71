// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// shop runs an example with a server that has the Pods web and db of a shop and the Pod of
// another application, and with the factory of its informers, which run.
func shop(example func(context.Context, *cache.Factory), options ...cache.FactoryOption) {
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	defer server.Close()
	for name, app := range map[string]string{"web": "shop", "db": "shop", "other": "books"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: map[string]string{"app": app}}}
		pod.Annotations = map[string]string{"notes": "long", "owner": "ann"}
		if err := server.Add(pod); err != nil {
			fmt.Println(err)
			return
		}
	}
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := cache.NewFactory(c, nil, options...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- factory.Run(ctx) }()
	example(ctx, factory)
	cancel()
	server.Close()
	if err := <-done; err != nil {
		fmt.Println(err)
	}
}

// An informer of some Pods, which lists them in pages.
func ExampleInformer() {
	shop(func(ctx context.Context, factory *cache.Factory) {
		pods := cache.Informer[*corev1.Pod](factory, cache.InNamespace("team-a"), cache.WithLabels("app=shop"), cache.PageSize(500))
		defer pods.Release()
		if err := pods.WaitForSync(ctx); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pods.Snapshot().Len(), "Pods")
	})
	// Output:
	// 2 Pods
}

// List decodes all objects that a selector matches. Select finds them and decodes none.
func ExampleSharedInformer_List() {
	shop(func(ctx context.Context, factory *cache.Factory) {
		pods := cache.Informer[*corev1.Pod](factory)
		if err := pods.WaitForSync(ctx); err != nil {
			fmt.Println(err)
			return
		}
		all, err := pods.List(labels.SelectorFromSet(labels.Set{"app": "shop"}))
		fmt.Println(len(all), "Pods of the shop", err)
		for key, item := range pods.Snapshot().Select("team-a", labels.SelectorFromSet(labels.Set{"app": "books"})) {
			fmt.Println(key, item.Meta().Labels)
		}
	})
	// Output:
	// 2 Pods of the shop <nil>
	// team-a/other app=books
}

// A transform drops what the program does not need before it is stored.
func ExampleTransform() {
	shop(func(ctx context.Context, factory *cache.Factory) {
		pods := cache.Informer[*corev1.Pod](factory, cache.Transform(func(pod *corev1.Pod) (*corev1.Pod, error) {
			delete(pod.Annotations, "notes")
			return pod, nil
		}))
		if err := pods.WaitForSync(ctx); err != nil {
			fmt.Println(err)
			return
		}
		pod, err := pods.Get(object.Key{Namespace: "team-a", Name: "web"})
		fmt.Println(pod.Annotations, err)
	})
	// Output:
	// map[owner:ann] <nil>
}

// A program that lists again and again has a budget for decoded objects.
func ExampleDecodedBudget() {
	shop(func(ctx context.Context, factory *cache.Factory) {
		pods := cache.Informer[*corev1.Pod](factory)
		defer pods.Release()
		if err := pods.WaitForSync(ctx); err != nil {
			fmt.Println(err)
			return
		}
		for range 2 {
			all, err := pods.List(nil)
			fmt.Println(len(all), "Pods,", factory.Budget().Status().Decodes, "decoded until now", err)
		}
		// Output:
		// 3 Pods, 3 decoded until now <nil>
		// 3 Pods, 3 decoded until now <nil>
	}, cache.DecodedBudget(128<<20))
}
