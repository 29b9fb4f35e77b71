// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/status"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The status of a Service gets a condition. The same condition again changes nothing, so
// nothing is written.
func Example() {
	ctx := context.Background()
	server := fakeapi.New(object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true})
	api, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	services := client.For[*corev1.Service](api)
	service, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		now := service.DeepCopy()
		changed := status.SetCondition(&now.Status.Conditions, now.Generation, "Ready", metav1.ConditionTrue, "Serving", "2 of 2")
		fmt.Println("changed:", changed, "- written:", status.Write(ctx, services, service, now))
		if service, err = services.Get(ctx, object.KeyOf(service)); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// changed: true - written: <nil>
	// changed: false - written: <nil>
}
