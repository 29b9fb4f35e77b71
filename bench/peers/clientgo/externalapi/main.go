// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	url := flag.String("provider", "", "`URL` of the provider's API")
	timeout := flag.Duration("timeout", 10*time.Second, "how long a call of the provider may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		err = run(ctx, config, &provider{url: strings.TrimSuffix(*url, "/"), timeout: *timeout}, slog.Default())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "externalapi:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, p *provider, log *slog.Logger) error {
	if p.url == "" {
		return fmt.Errorf("no provider given; name its URL with --provider")
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c, err := newController(clientset, p, log)
	if err != nil {
		return err
	}
	return c.run(ctx)
}
