// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// A Foo makes a Deployment, is followed by it, brings it back, and has its state.
func TestAFooHasItsDeployment(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	namespace := cluster.Namespace(t)
	cluster.Apply(t, namespace, "crd.yaml")
	example, err := newClientset(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	foos := example.Foos(namespace)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- run(ctx, cluster.Config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	replicas := int32(2)
	foo := &Foo{ObjectMeta: metav1.ObjectMeta{Name: "example"}, Spec: FooSpec{DeploymentName: "web", Replicas: &replicas}}
	if foo, err = foos.Create(ctx, foo, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	web := object.Key{Namespace: namespace, Name: "web"}
	has := func(what string, replicas int32) {
		setpointtest.Await(t, cluster.Client, web, what, func(d *appsv1.Deployment) bool {
			return metav1.IsControlledBy(d, foo) && *d.Spec.Replicas == replicas && d.Status.AvailableReplicas == replicas
		})
	}
	has("the Deployment has two replicas", 2)

	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"replicas": 5}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*appsv1.Deployment](cluster.Client).Patch(ctx, web, patch); err != nil {
		t.Fatal(err)
	}
	has("the Deployment has two replicas again", 2)

	setpointtest.Eventually(t, "the Foo has three available replicas", func() error {
		current, err := foos.Get(ctx, foo.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if three := int32(3); *current.Spec.Replicas != three {
			current.Spec.Replicas = &three
			_, err := foos.Update(ctx, current, metav1.UpdateOptions{})
			return errors.Join(errors.New("it had two"), err)
		}
		if got := current.Status.AvailableReplicas; got != 3 {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
	has("the Deployment has three replicas", 3)
}
