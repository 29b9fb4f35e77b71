// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Only Pods of the shop start a run, and of their updates only those of spec and annotations.
func Example() {
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	defer server.Close()
	for name, app := range map[string]string{"web": "shop", "db": "books"} {
		err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: map[string]string{"app": app}}})
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
	c := controller.New("shop", func(_ context.Context, req controller.Request) (controller.Result, error) {
		fmt.Println(req.Key)
		stop()
		return controller.Result{}, nil
	}, controller.For(pods,
		predicate.Selected[*corev1.Pod](labels.SelectorFromSet(labels.Set{"app": "shop"})),
		predicate.Either(predicate.GenerationChanged[*corev1.Pod], predicate.AnnotationsChanged[*corev1.Pod]),
	), controller.Log(slog.New(slog.DiscardHandler)))

	done := make(chan error)
	go func() { done <- factory.Run(ctx) }()
	fmt.Println(c.Run(ctx))
	server.Close()
	fmt.Println(<-done)
	// Output:
	// team-a/web
	// <nil>
	// <nil>
}
