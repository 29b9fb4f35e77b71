// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "podlogger:", err)
		os.Exit(1)
	}
}

// run writes a line for each change until ctx ends.
func run(ctx context.Context, config *rest.Config, out io.Writer) error {
	informers, err := cache.New(config, cache.Options{})
	if err != nil {
		return err
	}
	informer, err := informers.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	say := func(what string, o any) {
		if pod, ok := o.(*corev1.Pod); ok {
			fmt.Fprintln(out, what, pod.Namespace+"/"+pod.Name, pod.Status.Phase)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { say("Added", o) },
		UpdateFunc: func(_, o any) { say("Updated", o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			say("Deleted", o)
		},
	})
	if err != nil {
		return err
	}
	return informers.Start(ctx)
}
