// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"os"
	"os/signal"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig file of the cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctx, config)
	}
	if err != nil {
		klog.Background().Error(err, "The controller ends")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

// run runs the controller on a cluster until ctx ends.
func run(ctx context.Context, config *rest.Config) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	example, err := newClientset(config)
	if err != nil {
		return err
	}
	kubeFactory, exampleFactory := newFactories(kube, example)
	c, err := newController(kube, example, kubeFactory, exampleFactory)
	if err != nil {
		return err
	}
	kubeFactory.StartWithContext(ctx)
	exampleFactory.StartWithContext(ctx)
	err = c.run(ctx)
	kubeFactory.Shutdown()
	exampleFactory.Shutdown()
	return err
}
