// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

func TestTheLastErrorOfAKeyIsKnownUntilARunSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := object.Key{Namespace: "ns", Name: "a"}
		runs := 0
		c := controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
			if runs++; runs <= 3 {
				return controller.Result{}, errors.New("not yet")
			}
			return controller.Result{}, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		c.Queue().Add(key)
		synctest.Wait() // the first run
		last, total := c.Failures()
		if f := last[key]; total != 1 || f.Error != "not yet" || f.Runs != 1 || !f.At.Equal(time.Now()) {
			t.Errorf("after a failure: %v, %d in all", last, total)
		}
		time.Sleep(time.Minute)
		if last, total := c.Failures(); len(last) != 0 || total != 3 {
			t.Errorf("after a success: %v, %d in all", last, total)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestOfManyFailingKeysTheLastIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controller.New("test", func(context.Context, controller.Request) (controller.Result, error) {
			return controller.Result{}, controller.Terminal(errors.New("no"))
		}, controller.Log(slog.New(slog.DiscardHandler)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		const keys = 1500
		for i := range keys {
			key := object.Key{Name: strconv.Itoa(i)}
			c.Queue().Add(key)
			synctest.Wait()
			last, _ := c.Failures()
			if _, known := last[key]; !known || len(last) > 1000 {
				t.Fatalf("of %d keys that failed %d are known, the last among them: %v", i+1, len(last), known)
			}
		}
		if n := c.GivenUp(); n != keys {
			t.Errorf("%d keys were given up, it counts %d", keys, n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
