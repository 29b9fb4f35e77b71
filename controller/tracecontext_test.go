// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// What a run creates carries its trace context, and the next controller's run has it. Updates leave it as it is.
func TestTheObjectsThatARunCreatesCarryItsTraceContext(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint("switched on: ", on), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) { carriesContext(t, b, on) })
		})
	}
}

func carriesContext(t *testing.T, b *bubble, on bool) {
	t.Helper()
	record := newRecord(t)
	if on {
		record.Propagate(func(number uint64) string { return fmt.Sprint("of run ", number) })
	}
	var mu sync.Mutex
	read := map[string][]string{} // contexts by the reader's keys
	record.Observe(func(run runs.Run) {
		mu.Lock()
		defer mu.Unlock()
		if run.Controller == "reader" && len(run.Contexts) > 0 {
			read[run.Key] = run.Contexts
		}
	})
	nothing := func(context.Context, controller.Request) (controller.Result, error) { return controller.Result{}, nil }
	defer b.start(controller.New("reader", nothing, controller.For(b.pods), controller.Runs(record), quiet()))()
	pods := client.For[*corev1.Pod](b.client)
	mine := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", Annotations: map[string]string{"own": "stays", runs.TraceparentAnnotation: "of the template"}}}
	defer b.start(controller.New("writer", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		if req.Key.Name != "parent" {
			return controller.Result{}, nil
		}
		if _, err := b.pods.Get(object.Key{Namespace: "ns", Name: "child"}); err == nil {
			return controller.Result{}, nil
		}
		child, err := pods.Create(ctx, mine)
		if err != nil {
			return controller.Result{}, err
		}
		child.Labels = map[string]string{"a": "b"}
		if _, err = pods.Update(ctx, child); err != nil {
			return controller.Result{}, err
		}
		second := mine.DeepCopy()
		second.Name = "second"
		_, err = pods.Create(ctx, second)
		return controller.Result{}, err
	}, controller.For(b.pods), controller.Runs(record), quiet()))()
	synctest.Wait()

	want := "of the template"
	run := runsOf(record, "writer", "ns/parent")[0]
	if on {
		want = fmt.Sprint("of run ", run.Number)
	}
	if len(run.Writes) != 3 {
		t.Fatalf("the run is %+v, want one that wrote three times", run)
	}
	for _, name := range []string{"child", "second"} {
		pod, err := b.pods.Get(object.Key{Namespace: "ns", Name: name})
		if err != nil || pod.Annotations["own"] != "stays" || pod.Annotations[runs.TraceparentAnnotation] != want {
			t.Errorf("%s has the annotations %v, %v; want the context %q", name, pod.Annotations, err, want)
		}
	}
	if mine.Annotations[runs.TraceparentAnnotation] != "of the template" {
		t.Error("the object of the caller was changed")
	}
	mu.Lock()
	defer mu.Unlock()
	if got := read["ns/child"]; on && !slices.Equal(got, []string{want}) || !on && got != nil {
		t.Errorf("the reader's run for the child has the contexts %q, want %q only if they are on", got, want)
	}
	if got := read["ns/parent"]; got != nil {
		t.Errorf("the reader's run for an object without a context has %q", got)
	}
}
