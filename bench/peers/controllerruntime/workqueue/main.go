// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	workers = 4
	retries = 5
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config, os.Stdout, slog.Default())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workqueue:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, out io.Writer, log *slog.Logger) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	r := &reconciler{pods: mgr.GetClient(), out: out, log: log, failed: map[types.NamespacedName]int{}}
	err = ctrl.NewControllerManagedBy(mgr).Named("workqueue").For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// reconciler counts failures itself: the queue's count is not told to it.
type reconciler struct {
	pods client.Client
	out  io.Writer
	log  *slog.Logger

	mu     sync.Mutex
	failed map[types.NamespacedName]int
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := r.say(ctx, req.NamespacedName)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch failed := r.failed[req.NamespacedName]; {
	case err == nil:
		delete(r.failed, req.NamespacedName)
		return ctrl.Result{}, nil
	case failed < retries:
		r.failed[req.NamespacedName]++
		r.log.Warn("failed, trying again", "pod", req.String(), "error", err)
		return ctrl.Result{}, err
	default:
		delete(r.failed, req.NamespacedName)
		r.log.Error("dropped", "pod", req.String(), "retries", failed, "error", err)
		return ctrl.Result{}, reconcile.TerminalError(err)
	}
}

// say is what is done for a Pod. It fails for one that says so, to show what happens.
func (r *reconciler) say(ctx context.Context, key types.NamespacedName) error {
	var pod corev1.Pod
	err := r.pods.Get(ctx, key, &pod)
	if apierrors.IsNotFound(err) {
		fmt.Fprintln(r.out, "there is no Pod", key, "any more")
		return nil
	}
	if err != nil {
		return err
	}
	if why := pod.Annotations["example.com/fail"]; why != "" {
		return fmt.Errorf("looking at it: %s", why)
	}
	fmt.Fprintln(r.out, "there is Pod", key)
	return nil
}
