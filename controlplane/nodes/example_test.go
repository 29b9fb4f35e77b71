// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controlplane"
	"github.com/setpoint-io/setpoint/controlplane/nodes"
)

// A control plane with two simulated Nodes, and a Pod on one of them that runs for a
// while and fails.
func ExampleRun() {
	ctx, cancel := context.WithCancel(context.Background())
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer plane.Stop(context.Background())
	client := kubernetes.NewForConfigOrDie(plane.AdminConfig())

	// Nodes, until ctx ends.
	ready, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- nodes.Run(ctx, nodes.Options{
			Config:  plane.AdminConfig(),
			Nodes:   2,
			OnReady: func() { close(ready) },
		})
	}()
	<-ready

	// A controller would make this account, and would lift the taint that keeps the
	// scheduler from new Nodes; the Pod of this example names its Node itself.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	pods := client.CoreV1().Pods("default")
	watch, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "batch", Annotations: map[string]string{
			nodes.ExitAfter: "100ms",
			nodes.ExitCode:  "3",
		}},
		Spec: corev1.PodSpec{
			NodeName:      "node-1",
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "work", Image: "example.com/work"}},
		},
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	for event := range watch.ResultChan() {
		status := event.Object.(*corev1.Pod).Status
		fmt.Println(status.Phase)
		if status.Phase == corev1.PodFailed {
			fmt.Println("exit code", status.ContainerStatuses[0].State.Terminated.ExitCode)
			break
		}
	}
	watch.Stop()

	cancel()
	fmt.Println("ended:", <-ended)
	// Output:
	// Pending
	// Running
	// Failed
	// exit code 3
	// ended: <nil>
}
