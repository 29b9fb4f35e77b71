// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// A suite that wants a cluster with controllers and nodes changes nothing but one line.
func TestEnvtestUsesAClusterThatBehavesLikeOne(t *testing.T) {
	setpointtest.ForEnvtest(t) // the line
	env := new(envtest.Environment)
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	if err := c.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
			},
		},
	}
	if err := c.Create(ctx, web); err != nil {
		t.Fatal(err)
	}
	setpointtest.Eventually(t, "two Pods of the Deployment are ready", func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		if ready := web.Status.ReadyReplicas; ready != 2 {
			return fmt.Errorf("%d are ready", ready)
		}
		return nil
	})
	if err := c.Delete(ctx, web); err != nil { // in the background: the garbage collector deletes the rest
		t.Fatal(err)
	}
	setpointtest.Eventually(t, "the ReplicaSets and Pods of the Deployment are gone", func() error {
		var sets appsv1.ReplicaSetList
		var pods corev1.PodList
		if err := errors.Join(c.List(ctx, &sets, client.InNamespace(namespace.Name)), c.List(ctx, &pods, client.InNamespace(namespace.Name))); err != nil {
			return err
		}
		if len(sets.Items)+len(pods.Items) > 0 {
			return fmt.Errorf("there are %d ReplicaSets and %d Pods", len(sets.Items), len(pods.Items))
		}
		return nil
	})
	if err := c.Delete(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	setpointtest.Eventually(t, "the namespace is gone", func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is %s, and reading it says %v", namespace.Status.Phase, err) //nolint:errorlint // nil too
		}
		return nil
	})
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil || len(nodes.Items) == 0 {
		t.Errorf("after the end of envtest, the cluster, which others use too, has %d nodes: %v", len(nodes.Items), err)
	}
}
