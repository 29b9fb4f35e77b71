// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

func TestEveryChangeOfAPodIsALine(t *testing.T) {
	cluster := setpointtest.Cluster(t)
	namespace := cluster.Namespace(t)
	pods := client.For[*corev1.Pod](cluster.Client)
	there, err := pods.Create(t.Context(), pod(namespace, "there"))
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithTimeout(t.Context(), setpointtest.Patience)
	defer stop()
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- errors.Join(run(ctx, cluster.Config, out), out.Close())
	}()
	said := bufio.NewScanner(lines)
	expect := func(want string) {
		t.Helper()
		for said.Scan() { // others change Pods too: a deletion may be marked first
			if said.Text() == want {
				return
			}
		}
		t.Fatalf("it ended (%v) and never said %q", said.Err(), want)
	}

	expect("Added " + namespace + "/there Pending")
	if _, err := pods.Create(t.Context(), pod(namespace, "web")); err != nil {
		t.Fatal(err)
	}
	expect("Added " + namespace + "/web Pending")
	there.Status.Phase = corev1.PodRunning
	if _, err := pods.UpdateStatus(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	expect("Updated " + namespace + "/there Running")
	if err := pods.Delete(t.Context(), object.Key{Namespace: namespace, Name: "web"}, client.GracePeriod(0)); err != nil {
		t.Fatal(err)
	}
	expect("Deleted " + namespace + "/web Pending")

	stop()
	if said.Scan() {
		t.Errorf("it said %q, want no more", said.Text())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// pod names its node, so that no scheduler changes it.
func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody", // it does what the test says, and nothing else
			Containers:    []corev1.Container{{Name: "web", Image: "nginx"}},
		},
	}
}
