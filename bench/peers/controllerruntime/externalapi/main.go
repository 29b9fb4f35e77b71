// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	url := flag.String("provider", "", "`URL` of the provider's API")
	timeout := flag.Duration("timeout", 10*time.Second, "how long a call of the provider may take")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config, &provider{url: strings.TrimSuffix(*url, "/"), timeout: *timeout})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "externalapi:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, p *provider) error {
	if p.url == "" {
		return fmt.Errorf("no provider given; name its URL with --provider")
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := addController(mgr, p); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
