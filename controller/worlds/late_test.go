// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controller"
)

// A call may ignore its context, and return when another operation is in progress.
func TestALateEndLeavesTheNextOperationAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New[string, int](Options{})
		answer, done := make(chan struct{}), make(chan error)
		go func() {
			_, err := w.Run(t.Context(), "disk", "attach", time.Second, func(context.Context) (*int, error) { <-answer; return new(1), nil })
			done <- err
		}()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		w.Begin("disk", "attach", 0) // ends the first as overdue, and backs off
		time.Sleep(time.Second)
		if turn := w.Begin("disk", "attach", 0); turn.State != Free {
			t.Fatalf("the turn is %v", turn)
		}
		close(answer)
		if err := <-done; !errors.Is(err, errOverdue) {
			t.Errorf("the first operation ends with %v", err)
		}
		if _, running := w.Running("disk"); !running {
			t.Error("the answer of the first operation has ended the next one")
		}
		if turn := w.Begin("disk", "detach", 0); turn.State != Busy {
			t.Errorf("while attach is in progress, detach is %v", turn)
		}
		if _, knowledge := w.Actual("disk"); knowledge == Present {
			t.Error("a state from before the operation in progress counts as seen")
		}
	})
}

func TestADriverDoesNotPollAnOperationWithoutALimit(t *testing.T) {
	w := New[string, int](Options{})
	w.SawNothing("disk")
	w.Begin("disk", "attach", 0)
	d := Driver[string, int, int]{
		World:   w,
		Desired: func(context.Context, string) (*int, error) { return new(1), nil },
		Observe: func(context.Context, string) (*int, error) { return nil, nil },
		Next:    func(string, *int, *int) *Step[int] { return &Step[int]{Name: "attach"} },
	}
	result, err := d.Reconcile(t.Context(), controller.RequestOf[string]{Key: "disk"})
	if err != nil || !result.Again || result.After != 0 {
		t.Errorf("%+v, %v; want a run when the rate limit allows it", result, err)
	}
}
