// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// pod is the n-th Pod of a cluster in which each ReplicaSet has a hundred, as an
// informer shows it: in strings of its own.
func pod(n int) object.Meta {
	return object.Meta{
		UID: types.UID(fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", n)),
		Key: object.Key{Namespace: fmt.Sprintf("team-%d", n/1000), Name: fmt.Sprintf("web-5d4f8c7b9-%05d", n)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("web-5d4f8c7b9-of-%d", n/100),
			UID: types.UID(fmt.Sprintf("bbbbbbbb-0000-4000-8000-%012d", n/100)), Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

var pods1 = kindOf(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})

// A Pod that is new, one that changes as Pods do all the time, and one that goes.
func BenchmarkGraph(b *testing.B) {
	const n = 20_000
	metas := make([]object.Meta, n)
	for i := range metas {
		metas[i] = pod(i)
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		var before, after runtime.MemStats
		var g *graph
		for i := range b.N {
			if i%n == 0 {
				b.StopTimer()
				g = newGraph() // the one before is not counted
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
			}
			g.observe(pods1, &metas[i%n])
			g.take()
			if i%n == n-1 {
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "bytes/object")
				b.StartTimer()
			}
		}
		runtime.KeepAlive(g)
	})
	b.Run("changed", func(b *testing.B) {
		b.ReportAllocs()
		g := newGraph()
		for i := range metas {
			g.observe(pods1, &metas[i])
		}
		b.ResetTimer()
		for i := range b.N {
			g.observe(pods1, &metas[i%n])
			g.take()
		}
	})
	b.Run("gone", func(b *testing.B) {
		b.ReportAllocs()
		g := newGraph()
		for i := range b.N {
			if i%n == 0 {
				b.StopTimer()
				for j := range metas {
					g.observe(pods1, &metas[j])
				}
				b.StartTimer()
			}
			g.remove(pods1, metas[i%n].UID, true)
			g.take()
		}
	})
}
