// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// An informer of some objects that is behind shows a new object as little as one that it
// does not select. What the server has of the object tells the two apart.
func TestAnInformerOfSomeObjectsIsWaitedForWhereItSelectsWhatWasWritten(t *testing.T) {
	ours := map[string]string{"example.com/ours": ""}
	for _, test := range []struct {
		name   string
		option cache.InformerOption
		ns     string
		labels map[string]string
		after  time.Duration // how long it is waited at least while the informer is behind
		most   time.Duration
	}{
		{"it selects its labels", cache.WithLabels("example.com/ours"), "ns", ours, time.Minute, 0},
		{"it does not select its labels", cache.WithLabels("example.com/ours"), "ns", nil, time.Second, time.Minute},
		{"it selects its namespace", cache.InNamespace("ns"), "ns", nil, time.Minute, 0},
		{"it does not select its namespace", cache.InNamespace("ns"), "other", nil, 0, time.Millisecond},
		// Only the server knows which fields an object has.
		{"it selects fields", cache.WithFields("metadata.namespace=ns"), "ns", nil, time.Second, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				some := cache.Informer[*corev1.Pod](b.factory, test.option)
				var runs atomic.Int64
				c := controller.New("test", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
					if runs.Add(1) > 1 {
						return controller.Result{}, nil
					}
					b.line.to().HoldWatches(true)
					written := pod("written")
					written.Namespace, written.Labels = test.ns, test.labels
					_, err := client.For[*corev1.Pod](b.client).Create(ctx, written)
					return controller.Result{After: time.Nanosecond}, err
				}, controller.Reads(some), controller.Client(b.client), b.logger())
				c.Queue().Add(object.Key{Name: "it"})
				defer b.start(c)()
				if test.after > 0 {
					time.Sleep(test.after)
					synctest.Wait()
					if runs.Load() != 1 {
						t.Fatalf("%d runs while the informer was behind for %s", runs.Load(), test.after)
					}
				}
				if test.most > 0 {
					time.Sleep(test.most)
					synctest.Wait()
					if runs.Load() != 2 {
						t.Fatalf("%d runs %s later; waiting for %v", runs.Load(), test.most, c.Waiting())
					}
				}
				b.line.to().HoldWatches(false)
				time.Sleep(time.Minute)
				synctest.Wait()
				if runs.Load() != 2 || len(c.Waiting()) != 0 {
					t.Errorf("%d runs in the end; waiting for %v", runs.Load(), c.Waiting())
				}
			})
		})
	}
}
