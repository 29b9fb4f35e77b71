// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		err = run(ctx, config, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "podlogger:", err)
		os.Exit(1)
	}
}

// run writes a line for each change until ctx ends.
func run(ctx context.Context, config *rest.Config, out io.Writer) error {
	c, err := client.New(config)
	if err != nil {
		return err
	}
	informers := cache.NewFactory(c, slog.Default())
	_, err = cache.Informer[*corev1.Pod](informers).AddHandler(func(e cache.Event[*corev1.Pod]) {
		pod, err := e.Item().Object() // decoded here, at the first use
		if err != nil {
			fmt.Fprintln(out, e.Kind, e.Key(), err)
			return
		}
		fmt.Fprintln(out, e.Kind, e.Key(), pod.Status.Phase)
	}, cache.HandlerOptions{Name: "podlogger"})
	if err != nil {
		return err
	}
	return informers.Run(ctx)
}
