// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// A test of a program that scales Deployments, say, in a real cluster in which a Deployment
// gets its Pods.
func ExampleCluster() {
	_ = func(t *testing.T) {
		cluster := setpointtest.Cluster(t)
		namespace := cluster.Namespace(t)
		cluster.Apply(t, namespace, "testdata/web.yaml")

		web := object.Key{Namespace: namespace, Name: "web"}
		scale, err := client.MergePatch(map[string]any{"spec": map[string]any{"replicas": 5}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.For[*appsv1.Deployment](cluster.Client).Patch(t.Context(), web, scale); err != nil {
			t.Fatal(err)
		}
		setpointtest.Await(t, cluster.Client, web, "all five are available", func(d *appsv1.Deployment) bool {
			return d.Status.AvailableReplicas == 5
		})
	}
	// Output:
}

func ExampleEventually() {
	t := new(testing.T) // a test has one
	began := time.Now()
	setpointtest.Eventually(t, "a moment has passed", func() error {
		if time.Since(began) < time.Millisecond {
			return errors.New("it has not")
		}
		return nil
	})
	fmt.Println("it has passed")
	// Output: it has passed
}
