// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/runs"
)

// BenchmarkObject is the first view of an object over a record of 16 MiB that is full with the runs for 20,000 other Pods.
// Each turn has a page of its own, so nothing is remembered.
func BenchmarkObject(b *testing.B) {
	s := rollout(b)
	full, err := runs.New(runs.DefaultBytes)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now().Add(-time.Hour)
	loop := full.Loop("replicaset-controller", "apps", "ReplicaSet")
	for i := 0; full.Stats().Dropped == 0; i++ {
		pod := runs.Object{Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("pod-%d", i%20_000), UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}
		runs.Add(loop, object.Key{Namespace: "shop", Name: fmt.Sprintf("set-%d", i%2_000)}, &runs.Ended{Began: began.Add(time.Duration(i) * time.Millisecond),
			Outcome: runs.Done, Writes: []runs.Write{{Verb: "create", Object: pod, Version: fmt.Sprint(i + 1), Fields: []string{"spec.nodeName"}}}})
	}
	found, _ := s.record.Find(runs.Query{})
	for i := range found {
		runs.Add(full.Loop(found[i].Controller, "apps", "Deployment"), object.Key{Namespace: "shop", Name: "web"},
			&runs.Ended{Began: found[i].Began, Outcome: found[i].Outcome, Writes: found[i].Writes, Reasons: found[i].Reasons})
	}
	s.record = full
	s.overview = inTrouble()
	for _, path := range []string{"/", "/o/apps/deployments/shop/web"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if w := get(b, page.New(s, page.Options{}), path); w.Code != http.StatusOK {
					b.Fatalf("the answer is %d: %s", w.Code, w.Body)
				}
			}
		})
	}
}
