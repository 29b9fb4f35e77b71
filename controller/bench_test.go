// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// What a run costs that does nothing, with its key: the queue, the context, what is noted of
// writes and failures.
func BenchmarkRun(b *testing.B) {
	done := make(chan struct{})
	c := controller.New("bench", func(context.Context, controller.Request) (controller.Result, error) {
		done <- struct{}{}
		return controller.Result{}, nil
	}, quiet())
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	key := object.Key{Namespace: "ns", Name: "a"}
	b.ReportAllocs()
	for b.Loop() {
		c.Queue().Add(key)
		<-done
	}
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
