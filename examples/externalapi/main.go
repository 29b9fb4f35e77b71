// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/manager"
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
		err = run(ctx, config, &provider{url: strings.TrimSuffix(*url, "/"), timeout: *timeout})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "externalapi:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, p *provider, options ...manager.Option) error {
	if p.url == "" {
		return fmt.Errorf("no provider given; name its URL with --provider")
	}
	mgr, err := manager.New(config, options...)
	if err != nil {
		return err
	}
	if err := mgr.Add(newController(mgr, p)); err != nil {
		return err
	}
	return mgr.Run(ctx)
}
