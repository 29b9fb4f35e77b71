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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
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
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(clientset, 0)
	pods := factory.Core().V1().Pods()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	add := func(o any) {
		key, err := cache.DeletionHandlingObjectToName(o)
		if err != nil {
			log.Error("an event without a key", "error", err)
			return
		}
		queue.Add(key)
	}
	registration, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, o any) { add(o) },
		DeleteFunc: add,
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil // asked to stop before there was anything to do
	}

	var running sync.WaitGroup
	defer running.Wait()
	for range workers {
		running.Go(func() {
			work(queue, func(key cache.ObjectName) error { return say(pods.Lister(), key, out) }, log)
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	return nil
}

// work takes keys until the queue is shut down. A key has one worker at a time.
func work(queue workqueue.TypedRateLimitingInterface[cache.ObjectName], sync func(cache.ObjectName) error, log *slog.Logger) {
	for next(queue, sync, log) {
	}
}

func next(queue workqueue.TypedRateLimitingInterface[cache.ObjectName], sync func(cache.ObjectName) error, log *slog.Logger) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	switch err := sync(key); {
	case err == nil:
		queue.Forget(key)
	case queue.NumRequeues(key) < retries:
		log.Warn("failed, trying again", "pod", key.String(), "error", err)
		queue.AddRateLimited(key)
	default:
		log.Error("dropped", "pod", key.String(), "retries", queue.NumRequeues(key), "error", err)
		queue.Forget(key)
	}
	return true
}

// say is what is done for a Pod. It fails for one that says so, to show what happens.
func say(pods listers.PodLister, key cache.ObjectName, out io.Writer) error {
	pod, err := pods.Pods(key.Namespace).Get(key.Name)
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
