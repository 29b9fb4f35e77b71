// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// BenchmarkGet compares what a Get of a decoded object costs by itself, without deep copies: the caller reuses its object, so
// nothing is left to the garbage collector. Same reads one Pod, and All one after the other.
func BenchmarkGet(b *testing.B) {
	const count = 1_000
	api := fakeapi.New(pods)
	keys := make([]crclient.ObjectKey, count)
	for i := range keys {
		keys[i] = crclient.ObjectKey{Namespace: fmt.Sprint("ns-", i%10), Name: fmt.Sprint("pod-", i)}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: keys[i].Namespace, Name: keys[i].Name}}
		p.Spec.NodeName = "node-1"
		if err := api.Of(pods).Put(p); err != nil {
			b.Fatal(err)
		}
	}
	w := newWorldOf(api)
	for _, side := range []struct {
		name  string
		build crcache.NewCacheFunc
	}{{peerName, crcache.New}, {"NewCache", controllerruntime.NewCacheWith(controllerruntime.DecodedBudget(holdsAll))}} {
		c, err := side.build(api.Config(), crcache.Options{Mapper: w.mapper})
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(b.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		if !c.WaitForCacheSync(ctx) {
			b.Fatal("the cache has not started")
		}
		into := new(corev1.Pod)
		for range 2 {
			for _, key := range keys {
				if err := c.Get(ctx, key, into, crclient.UnsafeDisableDeepCopy); err != nil {
					b.Fatal(err)
				}
			}
		}
		for name, of := range map[string][]crclient.ObjectKey{"Same": keys[:1], "All": keys} {
			b.Run(name+"/"+side.name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := c.Get(ctx, of[i%len(of)], into, crclient.UnsafeDisableDeepCopy); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}
