// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

func newRecord(t *testing.T) *runs.Record {
	t.Helper()
	record, err := runs.New(runs.LeastBytes)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// runsOf returns the runs of a loop for a key, the oldest first.
func runsOf(record *runs.Record, controller, key string) []runs.Run {
	found, _ := record.Find(runs.Query{Controller: controller, Key: key})
	slices.Reverse(found)
	return found
}

// The write of one controller is the cause of another one's run, and the record joins them.
func TestTheWriteOfOneControllerIsTheCauseOfAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		record := newRecord(t)
		stopReader := b.start(controller.New("reader", func(context.Context, controller.Request) (controller.Result, error) {
			return controller.Result{}, nil
		}, controller.For(b.pods), controller.Runs(record), quiet()))
		defer stopReader()
		stopWriter := b.start(controller.New("writer", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			pod, err := b.pods.Get(req.Key)
			if err != nil || pod.Labels["a"] == "b" {
				return controller.Result{}, err
			}
			pod = pod.DeepCopy()
			pod.Labels = map[string]string{"a": "b"}
			// The paths of an update are known while the informer shows the state that it was made from.
			b.line.to().Faults.HoldWatches(true)
			defer b.line.to().Faults.HoldWatches(false)
			_, err = client.For[*corev1.Pod](b.client).Update(ctx, pod, client.FieldManager("writer"))
			return controller.Result{}, err
		}, controller.For(b.pods), controller.Runs(record), quiet()))
		defer stopWriter()
		synctest.Wait()

		wrote := runsOf(record, "writer", "ns/parent")[0]
		if len(wrote.Writes) != 1 {
			t.Fatalf("the first run of the writer wrote %+v, want one write", wrote.Writes)
		}
		w := wrote.Writes[0]
		if w.Verb != "update" || w.Object.Name != "parent" || w.Object.UID == "" || w.Version == "" || w.Manager != "writer" || strings.Join(w.Fields, " ") != "metadata.labels.a" {
			t.Errorf("the write is recorded as %+v, want an update of metadata.labels.a", w)
		}
		reads := runsOf(record, "reader", "ns/parent")
		last := reads[len(reads)-1]
		if last.LastVersion != w.Version {
			t.Fatalf("the last run of the reader is of version %s, want %s, which the writer made", last.LastVersion, w.Version)
		}
		origins := record.Origins(&last)
		if len(origins) != 1 || origins[0].Run == nil || origins[0].Run.Controller != "writer" || origins[0].Write.Version != w.Version {
			t.Fatalf("the origins of the reader's run are %+v, want the run of the writer", origins)
		}
		if o := last.Causes[0]; o.From == "" || o.From == o.Version {
			t.Errorf("the cause is from version %q to %q, want the version before", o.From, o.Version)
		}
		if first := origins[0].Origins; len(first) != 1 || first[0].Run != nil || first[0].NotKnown != runs.WrittenByOthers {
			t.Errorf("the origins of the writer's run are %+v, want the create of somebody else", first)
		}
	})
}

// Each outcome of a run is recorded as such, with the time of the next run where there is one.
func TestOutcomesAreRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		record := newRecord(t)
		runs1, n := []func(ctx context.Context) (controller.Result, error){
			func(context.Context) (controller.Result, error) { return controller.Result{After: time.Minute}, nil },
			func(context.Context) (controller.Result, error) { return controller.Result{}, errors.New("no luck") },
			func(context.Context) (controller.Result, error) { panic("at the disco") },
			func(ctx context.Context) (controller.Result, error) {
				b.line.to().Faults.RefuseNext(1, "patch", &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict})
				_, err := client.For[*corev1.Pod](b.client).Patch(ctx, key("parent"), labelPatch(t))
				return controller.Result{}, err
			},
			func(context.Context) (controller.Result, error) {
				return controller.Result{}, controller.Terminal(errors.New("never"))
			},
		}, 0
		stop := b.start(controller.New("c", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
			n++
			return runs1[n-1](ctx)
		}, controller.For(b.pods), controller.Runs(record), quiet()))
		defer stop()
		time.Sleep(2 * time.Minute) // of the bubble
		synctest.Wait()

		var got []string
		for _, r := range runsOf(record, "c", "ns/parent") {
			text := fmt.Sprintf("%s attempt=%d delay=%v next=%v", r.Outcome, r.Attempt, r.Wait.Delay, r.NextLook != nil)
			for _, w := range r.Writes {
				text += fmt.Sprintf(" %s %s code=%d %v", w.Verb, w.Object, w.Code, w.Fields)
			}
			got = append(got, text+" "+r.Error)
		}
		want := []string{
			"again attempt=0 delay=0s next=true ",
			"error attempt=0 delay=1m0s next=true no luck",
			"panic attempt=1 delay=5ms next=true reconciling ns/parent: panic: at the disco",
			"error attempt=2 delay=10ms next=true patch Pod ns/parent code=409 [metadata.labels.a]",
			"givenUp attempt=3 delay=20ms next=false never",
		}
		for i := range want {
			if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
				t.Fatalf("the record has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

func labelPatch(t *testing.T) client.Patch {
	t.Helper()
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// The reasons of the last run are the present ones, and a reason that is stated again is counted.
func TestReasonsOfTheLastRunArePresent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		record, waits := newRecord(t), true
		stop := b.start(controller.New("c", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
			if !waits {
				return controller.Result{}, nil
			}
			reason := controller.Reason{Code: "Waits", Text: "waits for {n} Pods of {ns}", Params: controller.With("n", 3, "ns", "shop"), Ends: "a Pod becomes ready"}
			controller.Because(ctx, reason)
			controller.Because(ctx, reason) // which counts once
			return controller.Result{After: time.Minute}, nil
		}, controller.For(b.pods), controller.Runs(record), quiet()))
		defer stop()
		time.Sleep(10*time.Minute + time.Second) // of the bubble
		synctest.Wait()
		present := record.Present(runs.Query{Object: runs.Object{Kind: "Pod", Namespace: "ns", Name: "parent"}})
		if len(present) != 1 || present[0].Runs != 11 || len(present[0].Reasons) != 1 {
			t.Fatalf("present are %+v, want one run of eleven, with one reason", present)
		}
		if got, want := present[0].Reasons[0].String(), "waits for 3 Pods of shop (until a Pod becomes ready)"; got != want {
			t.Errorf("the reason is %q, want %q", got, want)
		}
		if next := present[0].NextLook; next == nil || next.Sub(present[0].Last) != time.Minute {
			t.Errorf("the next look is %v, want a minute after %v", next, present[0].Last)
		}
		waits = false
		b.change("parent")
		synctest.Wait()
		if present := record.Present(runs.Query{}); len(present) > 0 {
			t.Errorf("a run without reasons left %+v present", present)
		}
	})
}

// A run that waited for the end of the one before, and for the informers to see what it wrote, says so.
func TestTheWaitForOwnWritesIsRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		record, first := newRecord(t), true
		stop := b.start(controller.New("c", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if !first {
				return controller.Result{}, nil
			}
			first = false
			b.line.to().Faults.HoldWatches(true)
			time.AfterFunc(3*time.Second, func() { b.line.to().Faults.HoldWatches(false) })
			_, err := client.For[*corev1.Pod](b.client).Patch(ctx, req.Key, labelPatch(t))
			req.Enqueue(req.Key)
			return controller.Result{}, err
		}, controller.For(b.pods), controller.Runs(record), quiet()))
		defer stop()
		time.Sleep(10 * time.Second) // of the bubble
		synctest.Wait()
		all := runsOf(record, "c", "ns/parent")
		if len(all) < 2 || all[0].Settled != 3*time.Second || all[1].Wait.Before != 3*time.Second {
			t.Fatalf("the record has %+v, want a run whose writes appeared after 3 s, and one that waited for that", all)
		}
	})
}

// The text of an error never has the values that a server quotes.
func TestErrorsOfInvalidObjectsAreRecordedWithoutValues(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		record := newRecord(t)
		stop := b.start(controller.New("c", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			b.line.to().Faults.RefuseNext(1, "patch", &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity,
				Reason: metav1.StatusReasonInvalid, Message: `Secret "s" is invalid: type: Invalid value: "hunter2"`,
				Details: &metav1.StatusDetails{Kind: "Secret", Name: "s", Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Field: "type", Message: `Invalid value: "hunter2"`}}}})
			_, err := client.For[*corev1.Pod](b.client).Patch(ctx, req.Key, labelPatch(t))
			return controller.Result{}, controller.Terminal(err)
		}, controller.For(b.pods), controller.Runs(record), quiet()))
		defer stop()
		synctest.Wait()
		if got, want := runsOf(record, "c", "ns/parent")[0].Error, `Secret "s" is invalid: type (FieldValueInvalid)`; got != want {
			t.Errorf("the error is %q, want %q", got, want)
		}
	})
}

// Keys that are no objects are found by their text.
func TestRunsOfOtherKeysAreRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bubble) {
		record := newRecord(t)
		type pair struct{ a, b int }
		c := controller.NewKeyed("pairs", func(context.Context, controller.RequestOf[pair]) (controller.Result, error) {
			return controller.Result{}, nil
		}, controller.Runs(record), quiet())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		for range 2 {
			c.Queue().Add(pair{1, 2})
			synctest.Wait()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if all := runsOf(record, "pairs", "{1 2}"); len(all) != 1 || all[0].Runs != 2 || all[0].Object != (runs.Object{}) {
			t.Errorf("the record has %+v, want two runs of {1 2} in one", all)
		}
	})
}

// What a run costs that does nothing, with and without a record: the difference in time is that of the record, and
// there is none in allocations.
func BenchmarkRunRecorded(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		b.Run(fmt.Sprintf("recorded=%v", recorded), func(b *testing.B) {
			options := []controller.Option{quiet()}
			if recorded {
				record, err := runs.New(runs.DefaultBytes)
				if err != nil {
					b.Fatal(err)
				}
				options = append(options, controller.Runs(record))
			}
			done := make(chan struct{})
			c := controller.New("bench", func(context.Context, controller.Request) (controller.Result, error) {
				done <- struct{}{}
				return controller.Result{}, nil
			}, options...)
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			b.ReportAllocs()
			for b.Loop() {
				c.Queue().Add(object.Key{Namespace: "ns", Name: "a"})
				<-done
			}
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}
