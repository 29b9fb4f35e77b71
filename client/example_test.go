// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/fakeapi"
	"github.com/setpoint-io/setpoint/object"
)

func Example() {
	server := fakeapi.Start(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	defer server.Close()
	ctx := context.Background()

	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}

	// Typed: a view of one kind.
	pods := client.For[*corev1.Pod](c)
	_, err = pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}})
	fmt.Println("created:", err)
	pod, err := pods.Get(ctx, object.Key{Namespace: "team-a", Name: "web"})
	fmt.Println(pod.Name, err)

	// Piece by piece: one request.
	answer, err := c.Request(http.MethodGet).Path("/version").Do(ctx)
	fmt.Println(answer.Code, err)
	// Output:
	// created: <nil>
	// web <nil>
	// 200 <nil>
}
