// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// One life of an informer: it is requested, indexed, started, read, notified of a change, and
// stopped. The same handle creates the Pods.
func Example() {
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	defer server.Close()
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := cache.NewFactory(c, nil)
	pods := cache.Informer[*corev1.Pod](factory)
	byNode := cache.NewIndex(pods, func(pod cache.Item[*corev1.Pod]) ([]string, error) {
		o, err := pod.Object()
		if err != nil {
			return nil, err
		}
		return []string{o.Spec.NodeName}, nil
	})
	add := func(name string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: corev1.PodSpec{NodeName: "node-1"}}
		if _, err := pods.Create(context.Background(), pod); err != nil {
			fmt.Println(err)
		}
	}
	add("web-1")

	events := make(chan string)
	_, err = pods.AddHandler(func(e cache.Event[*corev1.Pod]) {
		events <- fmt.Sprint(e.Kind, " ", e.Key())
	}, cache.HandlerOptions{Name: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error)
	go func() { done <- factory.Run(ctx) }()
	if err := pods.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-events)
	for key := range pods.Snapshot().Namespace("team-a") {
		fmt.Println("there is", key)
	}

	add("web-2")
	fmt.Println(<-events)
	for node, count := range byNode.Values(pods.Snapshot()) {
		fmt.Println(node, "has", count, "Pods")
	}

	cancel()
	server.Close()
	fmt.Println("stopped:", <-done)
	// Output:
	// Added team-a/web-1
	// there is team-a/web-1
	// Added team-a/web-2
	// node-1 has 2 Pods
	// stopped: <nil>
}
