// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"log/slog"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

func TestTheLoggerOfARunNamesControllerKeyAndCause(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		same := false
		c := controller.New("labeller", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
			log := controller.Logger(ctx)
			log.Info("labelled", "labels", 2)
			inner, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			same = controller.Logger(inner) == log
			return controller.Result{}, nil
		}, controller.For(b.pods), b.logger())
		stop := b.start(c)
		stop()
		want := `level=INFO msg=labelled controller=labeller object=ns/parent cause="pods: Added Pod ns/parent at [0-9]+" labels=2\n`
		if got := b.log.String(); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("the log is\n%s\nwant a line\n%s", got, want)
		}
		if !same {
			t.Error("a context that was made of the context of the run has another logger")
		}
	})
}

func TestTheLoggerOfARunWithAnyOptionsIsThatOfTheLoop(t *testing.T) {
	for name, options := range map[string][]controller.Option{
		"that reads what is stale": {controller.WriteWait(0)},
		"with a timeout":           {controller.Timeout(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				c := controller.New("labeller", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
					controller.Logger(ctx).Info("labelled")
					return controller.Result{}, nil
				}, append(options, controller.Log(slog.New(slog.NewTextHandler(&log, nil))))...)
				c.Queue().Add(object.Key{Namespace: "ns", Name: "a"})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- c.Run(ctx) }()
				synctest.Wait()
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				want := `msg=labelled controller=labeller object=ns/a\n` // it was added by hand, without a cause
				if got := log.String(); !regexp.MustCompile(want).MatchString(got) {
					t.Errorf("the log is\n%s\nwant a line\n%s", got, want)
				}
			})
		})
	}
}

func TestTheLoggerOfAContextWithoutARunIsTheDefaultOne(t *testing.T) {
	if controller.Logger(t.Context()) != slog.Default() {
		t.Error("it is another one")
	}
}
