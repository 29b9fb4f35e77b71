// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A controller that gives every Pod a label.
func Example() {
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	defer server.Close()
	if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}); err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := cache.NewFactory(c, nil)
	ctx, stop := context.WithCancel(context.Background())

	pods := cache.Informer[*corev1.Pod](factory)
	labeller := controller.New("labeller",
		func(ctx context.Context, req controller.Request) (controller.Result, error) {
			pod, err := pods.Get(req.Key)
			if apierrors.IsNotFound(err) {
				return controller.Result{}, nil
			}
			if err != nil {
				return controller.Result{}, err
			}
			if pod.Labels["seen"] == "yes" {
				fmt.Println(req.Key, "has its label")
				stop() // enough for an example
				return controller.Result{}, nil
			}
			pod = pod.DeepCopy() // what the cache gives is read-only
			pod.Labels = map[string]string{"seen": "yes"}
			_, err = client.For[*corev1.Pod](c).Update(ctx, pod)
			return controller.Result{}, err
		},
		controller.For(pods), controller.Workers(2))

	done := make(chan error)
	go func() { done <- factory.Run(ctx) }()
	fmt.Println(labeller.Run(ctx))
	server.Close()
	fmt.Println(<-done)
	// Output:
	// team-a/web has its label
	// <nil>
	// <nil>
}
