// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
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
		{"it does not select its labels", cache.WithLabels("example.com/ours"), "ns", nil, 0, time.Millisecond},
		{"it selects its namespace", cache.InNamespace("ns"), "ns", nil, time.Minute, 0},
		{"it does not select its namespace", cache.InNamespace("ns"), "other", nil, 0, time.Millisecond},
		{"it selects its name", cache.WithFields("metadata.name=written"), "ns", nil, time.Minute, 0},
		{"it does not select its name", cache.WithFields("metadata.name=other"), "ns", nil, 0, time.Millisecond},
		{"it selects a field", cache.WithFields("spec.nodeName=,metadata.namespace=ns"), "ns", nil, time.Minute, 0},
		{"it does not select a field", cache.WithFields("spec.nodeName!=,metadata.namespace=ns"), "ns", nil, 0, time.Millisecond},
		// Only the server knows what the field is.
		{"it selects a field that nobody knows", cache.WithFields("status.unknown=x"), "ns", nil, time.Second, time.Minute},
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
				}, controller.Reads(some), b.logger())
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

// What an informer never shows costs nothing where the answer of the write tells so, and
// once the time of a question where only the server knows, however many writes there are.
func TestManyWritesThatAnInformerNeverShowsHoldTheKeyOnce(t *testing.T) {
	const writes = 20
	for _, test := range []struct {
		name   string
		option cache.InformerOption
		most   time.Duration
	}{
		{"its labels tell", cache.WithLabels("example.com/ours"), 0},
		{"its fields tell", cache.WithFields("spec.nodeName=one"), 0},
		{"the server knows", cache.WithFields("status.unknown=x"), 5 * time.Second}, // the first question
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				some := cache.Informer[*corev1.Pod](b.factory, test.option)
				var at []time.Time
				c := controller.New("test", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
					if at = append(at, time.Now()); len(at) > 1 {
						return controller.Result{}, nil
					}
					b.line.to().HoldWatches(true)
					for i := range writes {
						if _, err := client.For[*corev1.Pod](b.client).Create(ctx, pod(fmt.Sprint("written-", i))); err != nil {
							return controller.Result{}, err
						}
					}
					return controller.Result{After: time.Nanosecond}, nil
				}, controller.Reads(some), b.logger())
				c.Queue().Add(object.Key{Name: "it"})
				defer b.start(c)()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if len(at) != 2 || at[1].Sub(at[0]) > test.most+time.Nanosecond {
					t.Errorf("runs at %v, want the second %s after the first", at, test.most)
				}
			})
		})
	}
}

// An informer that has shown an object drops it when a write makes it one that it does not
// select. The next run does not see it any more.
func TestAnObjectThatAWriteTakesOutOfTheSelectionIsGoneForTheNextRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("target")
		b.patch("target", map[string]any{"labels": map[string]any{"example.com/ours": ""}})
		some := cache.Informer[*corev1.Pod](b.factory, cache.WithLabels("example.com/ours"))
		synctest.Wait()
		runs := 0
		c := controller.New("test", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
			if runs++; runs > 1 {
				if names(some)["target"] {
					t.Error("the second run sees what the first one took out of the selection")
				}
				return controller.Result{}, nil
			}
			b.line.to().HoldWatches(true)
			patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": nil}})
			if err == nil {
				_, err = client.For[*corev1.Pod](b.client).Patch(ctx, key("target"), patch)
			}
			return controller.Result{After: time.Nanosecond}, err
		}, controller.Reads(some), b.logger())
		c.Queue().Add(object.Key{Name: "it"})
		defer b.start(c)()
		time.Sleep(time.Minute)
		synctest.Wait()
		if runs != 1 || len(c.Waiting()) != 1 {
			t.Fatalf("%d runs while the informer was behind, waiting for %v", runs, c.Waiting())
		}
		b.line.to().HoldWatches(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if runs != 2 || len(c.Waiting()) != 0 {
			t.Errorf("%d runs in the end, waiting for %v", runs, c.Waiting())
		}
	})
}
