// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package finalizer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A deleted ConfigMap stays until its finalizer is removed.
func Example() {
	ctx := context.Background()
	server := fakeapi.New(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
	api, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	maps := client.For[*corev1.ConfigMap](api)
	o, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "dns-entry"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := object.KeyOf(o)
	if _, err = finalizer.Add(ctx, maps, o, "example.com/dns"); err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println("deleting:", maps.Delete(ctx, key))
	if o, err = maps.Get(ctx, key); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("is being deleted:", o.DeletionTimestamp != nil, o.Finalizers)
	fmt.Println("removing:", finalizer.Remove(ctx, maps, o, "example.com/dns"))
	_, err = maps.Get(ctx, key)
	fmt.Println(err)
	// Output:
	// deleting: <nil>
	// is being deleted: true [example.com/dns]
	// removing: <nil>
	// configmaps "dns-entry" not found
}
