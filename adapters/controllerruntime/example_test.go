// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A manager of controller-runtime with one line more than before: NewCache.
func ExampleNewCache() {
	ctrl.SetLogger(logr.Discard())
	configMaps := object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	api := fakeapi.New(configMaps)
	greeting := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "greeting"}, Data: map[string]string{"text": "hello"}}
	if err := api.Of(configMaps).Add(greeting); err != nil {
		panic(err)
	}

	mgr, err := ctrl.NewManager(api.Config(), ctrl.Options{
		NewCache: controllerruntime.NewCache, // the line
		Metrics:  server.Options{BindAddress: "0"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	reconciler := &greeter{client: mgr.GetClient(), done: stop}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		panic(err)
	}
	if err := mgr.Start(ctx); err != nil {
		panic(err)
	}
	// Output: default/greeting says hello
}

// A manager with the second line: its client reads its own writes.
func ExampleNewClient() {
	ctrl.SetLogger(logr.Discard())
	configMaps := object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	api := fakeapi.New(configMaps)
	mgr, err := ctrl.NewManager(api.Config(), ctrl.Options{
		NewCache:  controllerruntime.NewCache,
		NewClient: controllerruntime.NewClient, // the line
		Metrics:   server.Options{BindAddress: "0"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	mgr.GetCache().WaitForCacheSync(ctx)

	c := mgr.GetClient()
	for i := range 3 {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("m-%d", i)}}
		if err := c.Create(ctx, m); err != nil {
			panic(err)
		}
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list); err != nil {
			panic(err)
		}
		fmt.Println("created:", i+1, "listed:", len(list.Items))
	}
	stop()
	if err := <-done; err != nil {
		panic(err)
	}
	// Output:
	// created: 1 listed: 1
	// created: 2 listed: 2
	// created: 3 listed: 3
}

// greeter prints ConfigMaps.
type greeter struct {
	client client.Client
	done   func()
}

func (g *greeter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var m corev1.ConfigMap
	if err := g.client.Get(ctx, request.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	fmt.Println(request.NamespacedName, "says", m.Data["text"])
	g.done()
	return ctrl.Result{}, nil
}
