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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/manager"
)

func main() {
	url := flag.String("cloud", "", "`URL` of the cloud's API")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		err = run(ctx, config, &cloud{url: strings.TrimSuffix(*url, "/")})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "buckets:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, c *cloud, options ...manager.Option) error {
	if c.url == "" {
		return fmt.Errorf("no cloud given; name its URL with --cloud")
	}
	mgr, err := manager.New(config, options...)
	if err != nil {
		return err
	}
	if err := mgr.Add(newController(mgr, c)); err != nil {
		return err
	}
	return mgr.Run(ctx)
}
