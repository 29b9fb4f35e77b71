// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func Example() {
	server := fakeapi.New().Listen().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
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

// A Deployment is scaled without being read or written itself.
func ExampleSub() {
	server := answers(`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web","namespace":"team-a"},"spec":{"replicas":2}}`)
	c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: server})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, key := context.Background(), object.Key{Namespace: "team-a", Name: "web"}

	scale := client.Sub[*autoscalingv1.Scale](client.For[*appsv1.Deployment](c), "scale")
	now, err := scale.Get(ctx, key)
	fmt.Println(now.Spec.Replicas, err)
	now.Spec.Replicas++
	_, err = scale.Update(ctx, key, now)
	fmt.Println(err)
	// Output:
	// GET /apis/apps/v1/namespaces/team-a/deployments/web/scale
	// 2 <nil>
	// PUT /apis/apps/v1/namespaces/team-a/deployments/web/scale
	// <nil>
}

// answers is a server that prints each request and gives the same answer to all.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	fmt.Println(r.Method, r.URL.Path)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(a))),
	}, nil
}
