// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// A container crashes, is started again, crashes again, and then runs.
func Example() {
	type tree = map[string]any
	pods := event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	container := func(restarts int64, state string) tree {
		ended := tree{"terminated": tree{"reason": "OOMKilled", "exitCode": int64(137)}}
		status := tree{"name": "web", "restartCount": restarts, "state": tree{state: tree{"reason": "CrashLoopBackOff"}}, "lastState": ended}
		return tree{"spec": tree{"nodeName": "node-1"}, "status": tree{"containerStatuses": []any{status}}}
	}

	tracker := trouble.New()
	web := trouble.Object{Kind: pods, Key: object.Key{Namespace: "shop", Name: "web"}}
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	state := container(0, "running")
	for _, next := range []tree{container(1, "waiting"), container(1, "running"), container(2, "waiting"), container(2, "running")} {
		now = now.Add(10 * time.Second)
		news := tracker.Observe(web, "1", trouble.Of(pods, state), trouble.Of(pods, next), now)
		for _, n := range news.Begun {
			fmt.Println(n.Text)
		}
		state = next
	}
	now = tracker.Next()
	for _, n := range tracker.Observe(web, "1", nil, trouble.Of(pods, state), now).Over {
		fmt.Println(n.Text)
	}
	// Output:
	// container web CrashLoopBackOff: exit 137, 1 restart, OOMKilled
	// container web runs again after 2 restarts in 30 s
}
