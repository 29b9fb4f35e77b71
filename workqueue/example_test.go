// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// A worker that tries a key five times and then drops it, loudly.
func Example() {
	q := workqueue.New(workqueue.Options[string]{Name: "example"})
	reconcile := func(key string) error {
		if key == "default/broken" {
			return errors.New("no such image")
		}
		return nil
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		for item := range q.Items() {
			err := reconcile(item.Key)
			switch {
			case err == nil:
				fmt.Println(item.Key, "is as it should be")
				q.Forget(item.Key)
			case item.Attempt < 5:
				q.AddRateLimited(item.Key)
			default:
				fmt.Printf("%s is dropped after %d retries: %v\n", item.Key, item.Attempt, err)
				q.Forget(item.Key)
				q.ShutDown()
			}
		}
	}()
	q.AddWith(workqueue.Add{}, "default/web", "default/broken")
	<-worked
	// Output:
	// default/web is as it should be
	// default/broken is dropped after 5 retries: no such image
}

// Why a key runs survives that its adds are merged.
func ExampleItem() {
	q := workqueue.New(workqueue.Options[object.Key]{})
	web := object.Key{Namespace: "default", Name: "web"}
	for i, verb := range []string{workqueue.Added, workqueue.Updated, workqueue.Updated} {
		q.AddWith(workqueue.Add{Cause: workqueue.Cause{
			Source:  "pods",
			Verb:    verb,
			Ref:     object.Ref{Kind: "Pod", Key: object.Key{Namespace: "default", Name: "web-x7k2p"}},
			Version: fmt.Sprint(4711 + i),
		}}, web)
	}
	item, _ := q.Get()
	fmt.Printf("%v, %d adds\n", item.Key, item.Adds)
	for cause := range item.Causes.All() {
		fmt.Println(cause)
	}
	q.Done(web)
	// Output:
	// default/web, 3 adds
	// pods: Added Pod default/web-x7k2p at 4711
	// pods: Updated Pod default/web-x7k2p at 4713
}

// A namespace with many keys costs another a single turn.
func ExampleOptions_fair() {
	q := workqueue.New(workqueue.Options[string]{
		Fair: func(key string) string {
			namespace, _, _ := strings.Cut(key, "/")
			return namespace
		},
	})
	q.AddWith(workqueue.Add{}, "large/1", "large/2", "large/3", "small/1")
	q.ShutDown()
	for item := range q.Items() {
		fmt.Println(item.Key)
	}
	// Output:
	// large/1
	// small/1
	// large/2
	// large/3
}

// Limits are values: retries after 1, 2, 4 minutes up to an hour, and one a second in all.
func ExampleJoined() {
	q := workqueue.New(workqueue.Options[string]{
		Limiter: workqueue.Joined[string]{
			&workqueue.Exponential[string]{Base: time.Minute, Max: time.Hour},
			&workqueue.TokenBucket[string]{PerSecond: 1, Burst: 10},
		},
	})
	q.AddRateLimited("default/web")
	q.AddRateLimited("default/web")
	fmt.Println(q.NumRequeues("default/web"), "failures,", q.Stats().Delayed, "delayed")
	q.ShutDown()
	// Output:
	// 2 failures, 1 delayed
}

// Of several delays the earliest counts.
func ExampleQueue_AddAfter() {
	q := workqueue.New(workqueue.Options[string]{})
	q.AddAfter("default/certificate", 24*time.Hour)
	q.AddAfter("default/certificate", time.Millisecond)
	item, _ := q.Get()
	fmt.Println(item.Key, "runs for", item.Adds, "adds")
	q.Done(item.Key)
	q.ShutDown()
	// Output:
	// default/certificate runs for 2 adds
}

func ExampleQueue_ShutDownWithDrain() {
	q := workqueue.New(workqueue.Options[string]{Name: "pods"})
	q.Add("default/web")
	q.Get() // by a worker that does not come back

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(q.ShutDownWithDrain(ctx))
	// Output:
	// draining work queue "pods": 0 keys are not handed out, 1 are not done: context deadline exceeded
}
