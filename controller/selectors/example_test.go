// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selectors_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The Services that select a Pod, and the Pods that a Service selects.
func Example() {
	server := fakeapi.New()
	services := server.Serve(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
	pods := server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	for name, selector := range map[string]map[string]string{"web": {"app": "web"}, "db": {"app": "db"}} {
		_ = services.Add(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Selector: selector},
		})
	}
	_ = pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web", "tier": "front"}}})
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := cache.NewFactory(c, nil)
	serviceInformer, podInformer := cache.Informer[*corev1.Service](factory), cache.Informer[*corev1.Pod](factory)

	selecting := selectors.NewIndex(serviceInformer, func(s *corev1.Service) (labels.Selector, error) {
		return labels.SelectorFromSet(s.Spec.Selector), nil
	})
	labelled := selectors.NewLabelled(podInformer)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- factory.Run(ctx) }()
	fmt.Println(serviceInformer.WaitForSync(ctx), podInformer.WaitForSync(ctx))

	pod := podInformer.Snapshot().Get(object.Key{Namespace: "shop", Name: "web-0"}).Meta()
	for key := range selecting.Selecting(pod.Namespace, pod.Labels) {
		fmt.Println("Service", key, "selects", pod.Key)
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	for key := range labelled.Selected(podInformer.Snapshot(), "shop", selector) {
		fmt.Println(selector, "selects", key)
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// <nil> <nil>
	// Service shop/web selects shop/web-0
	// app=web selects shop/web-0
	// <nil>
}
