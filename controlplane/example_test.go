// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"log"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controlplane"
)

// A whole life: start, use, stop. The cluster is temporary.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Progress: func(e controlplane.Event) {
			if e.State == controlplane.Ready {
				fmt.Println(e.Component, "is ready")
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cp.AdminConfig())
	if err != nil {
		log.Fatal(err)
	}
	ns, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("namespace", ns.Name, "is", ns.Status.Phase)
	if err := cp.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cp.Err())
	// Output:
	// etcd is ready
	// kube-apiserver is ready
	// kube-scheduler is ready
	// namespace default is Active
	// stopped
}

// Two API servers on one etcd, for a program that returns its errors.
func ExampleStart() { //nolint:testableexamples // it compiles; Example starts a control plane
	start := func(ctx context.Context) error {
		cp, err := controlplane.Start(ctx, controlplane.Options{APIServers: 2})
		if err != nil {
			return err
		}
		defer cp.Stop(context.Background())
		client, err := kubernetes.NewForConfig(cp.AdminConfig())
		if err != nil {
			return err
		}
		_, err = client.Discovery().ServerVersion()
		return err
	}
	_ = start // Example starts a control plane
}
