// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A program changes the line that makes its factory.
func ExampleNewSharedInformerFactory() {
	server := fakeapi.New() // in a program: the configuration of a cluster
	if err := server.Serve(pods).Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}); err != nil {
		panic(err)
	}
	clientset := kubernetes.NewForConfigOrDie(server.Config())

	factory := clientgo.NewSharedInformerFactory(clientset, 30*time.Second)
	podInformer := factory.Core().V1().Pods()
	handler, err := podInformer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { fmt.Println("added:", o.(*corev1.Pod).Name) },
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	cache.WaitFor(ctx, "", handler.HasSyncedChecker())

	pod, err := podInformer.Lister().Pods("team-a").Get("web")
	if err != nil {
		panic(err)
	}
	fmt.Println("listed:", pod.Name)
	cancel()
	factory.Shutdown()
	// Output:
	// added: web
	// listed: web
}
