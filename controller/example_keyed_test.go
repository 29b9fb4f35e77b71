// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// team is a key that is no object: a team in a namespace, as labels of Pods say.
type team struct{ namespace, name string }

// A loop that counts the Pods of each team of each namespace.
func ExampleNewKeyed() {
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	defer server.Close()
	for _, name := range []string{"web", "db"} {
		err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"team": "blue"}}})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	api, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := cache.NewFactory(api, nil)
	pods := cache.Informer[*corev1.Pod](factory)
	ctx, stop := context.WithCancel(context.Background())

	c := controller.NewKeyed("team-counter", func(_ context.Context, req controller.RequestOf[team]) (controller.Result, error) {
		n := 0
		for _, pod := range pods.Snapshot().Namespace(req.Key.namespace) {
			if pod.Meta().Labels.Get("team") == req.Key.name {
				n++
			}
		}
		fmt.Printf("team %s has %d Pods in namespace %s\n", req.Key.name, n, req.Key.namespace)
		stop() // enough for an example
		return controller.Result{}, nil
	}, controller.Workers(2), controller.Watches(pods, func(pod cache.Item[*corev1.Pod], add func(team)) {
		// When a Pod moves from one team to another, both are counted: the loop calls this
		// function for the old and the new state.
		if name := pod.Meta().Labels.Get("team"); name != "" {
			add(team{pod.Key().Namespace, name})
		}
	}))

	done := make(chan error)
	go func() { done <- factory.Run(ctx) }()
	fmt.Println(c.Run(ctx))
	server.Close()
	fmt.Println(<-done)
	// Output:
	// team blue has 2 Pods in namespace shop
	// <nil>
	// <nil>
}

// A controller of two loops: one finds out what there is to do, the other does it.
func ExampleJoin() {
	ctx, stop := context.WithCancel(context.Background())
	quiet := controller.Log(slog.New(slog.DiscardHandler))
	greet := controller.NewKeyed("greeter", func(_ context.Context, req controller.RequestOf[string]) (controller.Result, error) {
		fmt.Println("hello,", req.Key)
		stop() // enough for an example
		return controller.Result{}, nil
	}, quiet)
	find := controller.NewKeyed("greeter-find", func(_ context.Context, req controller.RequestOf[string]) (controller.Result, error) {
		for name := range strings.FieldsSeq(req.Key) {
			greet.Queue().Add(name)
		}
		return controller.Result{}, nil
	}, quiet)
	find.Queue().Add("world")
	fmt.Println(controller.Join("greeter", greet, find).Run(ctx))
	// Output:
	// hello, world
	// <nil>
}
