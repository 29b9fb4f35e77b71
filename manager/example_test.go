// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A whole program: a controller that says which Pods there are.
func Example() {
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	defer server.Close()
	if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	mgr, err := manager.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := cache.Informer[*corev1.Pod](mgr)
	err = mgr.Add(controller.New("pod-logger",
		func(_ context.Context, req controller.Request) (controller.Result, error) {
			pod, err := pods.Get(req.Key)
			if err != nil {
				return controller.Result{}, err
			}
			fmt.Println("there is", pod.Name)
			stop()
			return controller.Result{}, nil
		},
		controller.For(pods), controller.Workers(4), controller.MaxRetries(5)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mgr.Run(ctx))
	// Output:
	// there is web
	// <nil>
}
