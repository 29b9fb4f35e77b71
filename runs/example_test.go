// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// A loop records a run that wrote a ReplicaSet, and one that waits.
func Example() {
	record, err := runs.New(runs.DefaultBytes)
	if err != nil {
		fmt.Println(err)
		return
	}
	web := object.Key{Namespace: "shop", Name: "web"}
	deployments := record.Loop("deployment", "apps", "Deployment")
	set := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-6f7"}
	began := time.Date(2026, time.November, 23, 12, 1, 20, 0, time.UTC)
	runs.Add(deployments, web, &runs.Ended{Began: began, Took: 2 * time.Millisecond, Outcome: runs.Done,
		Writes: []runs.Write{{Verb: "create", Object: set, Version: "4711"}}})
	runs.Add(deployments, web, &runs.Ended{Began: began.Add(time.Second), Took: time.Millisecond, Outcome: runs.Done,
		Reasons: []runs.Reason{{Code: "RolloutPaused", Text: "the rollout is paused", Ends: "spec.paused becomes false"}}})

	run, write, _ := record.Wrote(set, "4711")
	fmt.Println(run.Controller, run.Key, run.Writes[write].Verb, run.Writes[write].Object)
	for _, run := range record.Present(runs.Query{Object: run.Object}) {
		fmt.Println(run.Key, run.Reasons[0])
	}
	// Output:
	// deployment shop/web create ReplicaSet.apps shop/web-6f7
	// shop/web the rollout is paused (until spec.paused becomes false)
}
