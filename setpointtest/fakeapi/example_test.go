// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A server with one object, a request that fails once, and what was asked for.
func Example() {
	api := fakeapi.New()
	maps := api.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
	if err := maps.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices"}}); err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(api.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	view := client.For[*corev1.ConfigMap](c)
	key := object.Key{Namespace: "shop", Name: "prices"}

	maps.RefuseNext(1, "get", fakeapi.Forbidden("get configmaps"))
	_, err = view.Get(context.Background(), key)
	fmt.Println("forbidden:", apierrors.IsForbidden(err))

	prices, err := view.Get(context.Background(), key)
	if err != nil {
		fmt.Println(err)
		return
	}
	prices.Data = map[string]string{"tea": "3"}
	if _, err := view.Update(context.Background(), prices); err != nil {
		fmt.Println(err)
		return
	}
	_, err = view.Update(context.Background(), prices) // its version is old by now
	fmt.Println("conflict:", apierrors.IsConflict(err))
	for _, call := range maps.Calls() {
		fmt.Println(call)
	}
	// Output:
	// forbidden: true
	// conflict: true
	// get /api/v1/namespaces/shop/configmaps/prices
	// get /api/v1/namespaces/shop/configmaps/prices
	// update /api/v1/namespaces/shop/configmaps/prices
	// update /api/v1/namespaces/shop/configmaps/prices
}
