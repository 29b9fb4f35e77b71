// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/settle"
)

func Example() {
	s := settle.New(settle.Options{Settle: 3 * time.Second})
	now := time.Date(2026, 3, 4, 15, 4, 5, 0, time.UTC)
	state := func(ready int64) map[string]any {
		status := map[string]any{"replicas": int64(3), "updatedReplicas": int64(3), "readyReplicas": ready, "availableReplicas": ready}
		return map[string]any{"spec": map[string]any{"replicas": int64(3)}, "status": status}
	}
	for ready := range int64(3) {
		now = now.Add(time.Second)
		told := s.Add(&event.Event{
			Verb: event.Updated, Time: now, Kind: event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments"},
			Key: object.Key{Namespace: "team-a", Name: "web"}, Old: state(ready), New: state(ready + 1),
		}, now)
		fmt.Println("told:", len(told), "held:", s.Held())
	}
	for _, e := range s.Due(s.Next()) {
		fmt.Println(e.Verb, e.Key, e.Summary)
	}
	// Output:
	// told: 0 held: 1
	// told: 0 held: 1
	// told: 0 held: 1
	// settled team-a/web 3 changes in 2 s, now 3/3 ready
}
