// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
)

// measureInformers measures what many informers take that hold next to nothing: the heap and the stacks, and the goroutines. A first
// informer, which stays, has opened a connection and made what all of them share.
func measureInformers(ctx context.Context, s *sideSpec) (readings, error) {
	config := &rest.Config{Host: s.Server, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}} // of this machine
	many := map[string]func(*rest.Config) (manyInformers, error){setpointSide: setpointInformers, clientGoSide: clientGoInformers}[s.Side]
	all, err := many(config)
	if err != nil {
		return nil, err
	}
	if _, err := all(ctx, 0, 1); err != nil {
		return nil, err
	}
	before, err := observeAtRest()
	if err != nil {
		return nil, err
	}
	var stop func()
	lap, err := timed(func() (err error) {
		stop, err = all(ctx, 1, s.Objects)
		return err
	})
	if err != nil {
		return nil, err
	}
	running, err := observeAtRest()
	if err != nil {
		return nil, err
	}
	stop()
	after, err := observeAtRest()
	if err != nil {
		return nil, err
	}
	n := float64(s.Objects)
	return readings{
		"memory": (running.memory - before.memory) / n / 1e3, "goroutines": (running.goroutines - before.goroutines) / n,
		"resident": (running.resident - before.resident) / n * 1e3, "sync": lap.wall, "cpu": lap.cpu,
		"left": max(after.goroutines-before.goroutines, 0), "left-memory": (after.memory - before.memory) / n / 1e3,
	}, nil
}

// manyInformers starts informers, each of a namespace of its own from a number on, and returns when all of them and their handlers have
// the state. stop ends them, and returns when nothing of them runs.
type manyInformers func(ctx context.Context, from, n int) (stop func(), err error)

func setpointInformers(config *rest.Config) (manyInformers, error) {
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	factory := cache.NewFactory(c, slog.New(slog.DiscardHandler))
	return func(ctx context.Context, from, n int) (func(), error) {
		if from == 0 {
			go func() { _ = factory.Run(ctx) }() // an error only where it runs already
		}
		var all []cache.SharedInformer[*corev1.ConfigMap]
		var told []*cache.Registration
		for i := range n {
			informer := cache.Informer[*corev1.ConfigMap](factory, cache.InNamespace(manyNamespace(from+i)))
			registration, err := informer.AddHandler(func(cache.Event[*corev1.ConfigMap]) {}, cache.HandlerOptions{Name: "bench"})
			if err != nil {
				return nil, err
			}
			all, told = append(all, informer), append(told, registration)
		}
		for i, registration := range told {
			select {
			case <-registration.Synced():
			case <-ctx.Done():
				return nil, all[i].WaitForSync(ctx) // knows what is in the way
			}
		}
		return func() {
			for i := range all {
				all[i].Release()
				<-told[i].Ended()
			}
		}, nil
	}, nil
}

func clientGoInformers(config *rest.Config) (manyInformers, error) {
	c, err := kubernetes.NewForConfig(overProtobuf(config))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, from, n int) (func(), error) {
		running, cancel := context.WithCancel(ctx)
		var factories []informers.SharedInformerFactory
		var told []clientgo.ResourceEventHandlerRegistration
		for i := range n {
			factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(manyNamespace(from+i)))
			registration, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(clientgo.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
			if err != nil {
				cancel()
				return nil, err
			}
			factory.Start(running.Done())
			factories, told = append(factories, factory), append(told, registration)
		}
		for _, registration := range told {
			if err := until(ctx, "client-go's informers", func() (bool, error) { return registration.HasSynced(), nil }); err != nil {
				cancel()
				return nil, err
			}
		}
		return func() {
			cancel()
			for _, factory := range factories {
				factory.Shutdown()
			}
		}, nil
	}, nil
}

func manyNamespace(i int) string { return fmt.Sprint("team-", i) }

// processAtRest is what a process has when nothing happens.
type processAtRest struct {
	memory     float64 // bytes of live objects and of stacks
	resident   float64 // megabytes
	goroutines float64
}

// observeAtRest waits until the number of goroutines stays for twelve seconds, and returns what the process has. A handler of Setpoint
// keeps its goroutine for up to ten seconds after its last event.
func observeAtRest() (found processAtRest, err error) {
	const looks, apart = 120, 100 * time.Millisecond
	for same, before := 0, -1; same < looks; time.Sleep(apart) {
		n := runtime.NumGoroutine()
		if n == before {
			same++
		} else {
			same = 0
		}
		before = n
	}
	found.memory = liveHeap()
	stacks := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(stacks)
	found.memory += float64(stacks[0].Value.Uint64())
	found.goroutines = float64(runtime.NumGoroutine())
	found.resident, err = megabytes(os.Getpid(), "VmRSS:")
	return found, err
}
