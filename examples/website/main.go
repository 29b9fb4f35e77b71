// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
)

func main() {
	directory := flag.String("hostsdir", "", "`directory` that holds a file for each Website, as dnsmasq reads it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		err = run(ctx, config, hosts(*directory))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, outside hosts, options ...manager.Option) error {
	if info, err := os.Stat(string(outside)); err != nil || !info.IsDir() {
		return fmt.Errorf("%q is no directory; name one with --hostsdir", outside)
	}
	mgr, err := manager.New(config, append(options, manager.ClientOptions(client.WithScheme(kinds())))...)
	if err != nil {
		return err
	}
	if err := mgr.Add(newController(mgr, outside)); err != nil {
		return err
	}
	return mgr.Run(ctx)
}
