// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"os"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
)

// An answer of facts that a program has collected.
func Example() {
	web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	answer := explain.Tell(explain.Facts{
		Now: time.Now(), Object: web, Recorded: true, State: map[string]any{"metadata": map[string]any{"name": "web"}},
		Present: []runs.Run{{Controller: "deployment-controller", Object: web, Reasons: []runs.Reason{
			{Code: "RolloutPaused", Text: "the rollout is paused", Ends: "spec.paused becomes false"},
		}}},
	})
	if err := answer.Write(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Deployment.apps shop/web
	// The rollout is paused.
	//
	// NOT DONE, AND WHY
	//   deployment-controller  the rollout is paused (until spec.paused becomes false)
}
