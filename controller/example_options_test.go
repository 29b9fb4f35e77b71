// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// silent is the logger of an example whose output is what it prints.
var silent = controller.Log(slog.New(slog.DiscardHandler))

// A namespace with many keys does not delay another one with a single key.
func ExampleFair() {
	ctx, stop := context.WithCancel(context.Background())
	runs := 0
	c := controller.New("fair", func(_ context.Context, req controller.Request) (controller.Result, error) {
		fmt.Println(req.Key)
		if runs++; runs == 4 {
			stop()
		}
		return controller.Result{}, nil
	}, controller.Fair(), silent)
	for _, name := range []string{"1", "2", "3"} {
		c.Queue().Add(object.Key{Namespace: "large", Name: name})
	}
	c.Queue().Add(object.Key{Namespace: "small", Name: "1"})
	fmt.Println(c.Run(ctx))
	// Output:
	// large/1
	// small/1
	// large/2
	// large/3
	// <nil>
}

// Jobs of one customer do not delay those of another.
func ExampleFairBy() {
	type job struct{ customer, id string }
	ctx, stop := context.WithCancel(context.Background())
	runs := 0
	c := controller.NewKeyed("jobs", func(_ context.Context, req controller.RequestOf[job]) (controller.Result, error) {
		fmt.Println(req.Key.customer, req.Key.id)
		if runs++; runs == 3 {
			stop()
		}
		return controller.Result{}, nil
	}, controller.FairBy(func(j job) string { return j.customer }), silent)
	c.Queue().AddWith(workqueue.Add{}, job{"large", "1"}, job{"large", "2"}, job{"small", "1"})
	fmt.Println(c.Run(ctx))
	// Output:
	// large 1
	// small 1
	// large 2
	// <nil>
}

// A key that fails again and again is given up, and somebody is told.
func ExampleOnGivingUp() {
	ctx, stop := context.WithCancel(context.Background())
	c := controller.New("stubborn", func(context.Context, controller.Request) (controller.Result, error) {
		return controller.Result{}, errors.New("no such image")
	},
		controller.MaxRetries(2),
		controller.RateLimit(&workqueue.Exponential[object.Key]{Base: time.Millisecond}),
		controller.OnGivingUp(func(req controller.Request, err error) {
			fmt.Printf("%s is given up after %d retries: %v\n", req.Key, req.Attempt, err)
			stop()
		}), silent)
	c.Queue().Add(object.Key{Namespace: "shop", Name: "web"})
	fmt.Println(c.Run(ctx))
	// Output:
	// shop/web is given up after 2 retries: no such image
	// <nil>
}

// The times of a loop: how long a run may take, how long a key waits for its own writes, and
// how long a stop waits for the runs in progress.
func ExampleOption() {
	ctx, stop := context.WithCancel(context.Background())
	c := controller.New("patient", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		stop()
		_, bounded := ctx.Deadline()
		fmt.Println(req.Key, "runs with a deadline:", bounded, "- context after the stop:", ctx.Err())
		return controller.Result{}, nil
	},
		controller.Timeout(time.Minute),
		controller.WriteWait(30*time.Second),
		controller.Grace(20*time.Second),
		controller.Resync(10*time.Hour), silent)
	c.Queue().Add(object.Key{Namespace: "shop", Name: "web"})
	fmt.Println(c.Run(ctx))
	// Output:
	// shop/web runs with a deadline: true - context after the stop: <nil>
	// <nil>
}

// A loop that does not depend on its own writes does not wait for them.
func ExampleWriteWait() {
	ctx, stop := context.WithCancel(context.Background())
	c := controller.New("reporter", func(_ context.Context, req controller.Request) (controller.Result, error) {
		fmt.Println("reporting on", req.Key)
		stop()
		return controller.Result{}, nil
	}, controller.WriteWait(0), silent)
	c.Queue().Add(object.Key{Namespace: "shop", Name: "web"})
	fmt.Println(c.Run(ctx))
	// Output:
	// reporting on shop/web
	// <nil>
}
