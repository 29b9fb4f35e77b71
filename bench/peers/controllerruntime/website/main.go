// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	directory := flag.String("hostsdir", "", "`directory` that holds a file for each Website, as dnsmasq reads it")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config, hosts(*directory))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, outside hosts) error {
	if info, err := os.Stat(string(outside)); err != nil || !info.IsDir() {
		return fmt.Errorf("%q is no directory; name one with --hostsdir", outside)
	}
	scheme, err := kinds()
	if err != nil {
		return err
	}
	// Only what is labelled as ours: there may be many ConfigMaps of others.
	exists, err := labels.NewRequirement(labelled, selection.Exists, nil)
	if err != nil {
		return err
	}
	ours := cache.ByObject{Label: labels.NewSelector().Add(*exists)}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: ours, &appsv1.Deployment{}: ours, &corev1.Service{}: ours,
		}},
	})
	if err != nil {
		return err
	}
	if err := addController(mgr, outside); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
