// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package because_test

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/because"
	"github.com/setpoint-io/setpoint/watch/event"
)

// Why a Pod was created, by the record of this process.
func Example() {
	record, err := runs.New(runs.LeastBytes)
	if err != nil {
		fmt.Println(err)
	}
	runs.Add(record.Loop("replicaset-controller", "apps", "ReplicaSet"), object.Key{Namespace: "shop", Name: "web"}, &runs.Ended{
		Began: time.Now(), Outcome: runs.Done,
		Writes: []runs.Write{{Verb: "create", Version: "7", Object: runs.Object{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "p"}}},
	})
	looked := make(chan struct{})
	f := because.New(because.Options{Find: func(context.Context) ([]gather.Record, error) {
		defer close(looked)
		return []gather.Record{gather.Local(record)}, nil
	}})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go f.Run(ctx)
	<-looked

	created := &event.Event{Verb: event.Created, Kind: event.Kind{Version: "v1", Kind: "Pod"}, Key: object.Key{Namespace: "shop", Name: "web-1"}, UID: "p", Version: "7"}
	for created.Cause == nil { // until Run has taken the record over
		f.Fill(ctx, []*event.Event{created})
	}
	fmt.Println(created.Cause.Controller)
	// Output: replicaset-controller
}
