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
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

const (
	workers = 4
	retries = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		err = run(ctx, config, os.Stdout, slog.Default())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workqueue:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, config *rest.Config, out io.Writer, log *slog.Logger) error {
	c, err := client.New(config)
	if err != nil {
		return err
	}
	informers := cache.NewFactory(c, log)
	pods := cache.Informer[*corev1.Pod](informers)
	queue := workqueue.New(workqueue.Options[object.Key]{Name: "pods"})
	_, err = pods.AddHandler(func(e cache.Event[*corev1.Pod]) { queue.Add(e.Key()) },
		cache.HandlerOptions{Name: "workqueue", EveryStep: true})
	if err != nil {
		return err
	}

	var running sync.WaitGroup
	running.Go(func() { _ = informers.Run(ctx) })
	defer running.Wait()
	if err := pods.WaitForSync(ctx); err != nil {
		return nil // stopped before there was anything to do
	}
	for range workers {
		running.Go(func() {
			work(queue, func(key object.Key) error { return say(pods, key, out) }, log)
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	return nil
}

// work takes keys until the queue is shut down. A key has one worker at a time.
func work(queue *workqueue.Queue[object.Key], sync func(object.Key) error, log *slog.Logger) {
	for item := range queue.Items() {
		switch err := sync(item.Key); {
		case err == nil:
			queue.Forget(item.Key)
		case item.Attempt < retries:
			log.Warn("failed, trying again", "pod", item.Key.String(), "error", err)
			queue.AddRateLimited(item.Key)
		default:
			log.Error("dropped", "pod", item.Key.String(), "retries", item.Attempt, "error", err)
			queue.Forget(item.Key)
		}
	}
}

// say is what is done for a Pod. It fails for one that says so, to show what happens.
func say(pods cache.SharedInformer[*corev1.Pod], key object.Key, out io.Writer) error {
	pod, err := pods.Get(key)
	if apierrors.IsNotFound(err) {
		fmt.Fprintln(out, "there is no Pod", key, "any more")
		return nil
	}
	if err != nil {
		return err
	}
	if why := pod.Annotations["example.com/fail"]; why != "" {
		return fmt.Errorf("looking at it: %s", why)
	}
	fmt.Fprintln(out, "there is Pod", key)
	return nil
}
