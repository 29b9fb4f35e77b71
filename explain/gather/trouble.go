// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// schedulerPatience is how long a scheduler may take until it says something about a new Pod. One that is busy takes seconds.
const schedulerPatience = 10 * time.Second

// troubleOf returns a sentence for each thing that is wrong with an object at a time.
func troubleOf(r object.Resource, state map[string]any, now time.Time) []string {
	all := trouble.Present(kindOf(r), state)
	if unseen := unseenByScheduler(r, jsontree.Tree{Value: state}, now); unseen != "" {
		all = append(all, unseen)
	}
	return all
}

// unseenByScheduler says that no scheduler has looked at a Pod: it has no Node, and no condition says why. The state of a Pod
// whose scheduler does not run stays so, and only the time since its creation tells it from that of a new Pod.
func unseenByScheduler(r object.Resource, o jsontree.Tree, now time.Time) string {
	if r.Group != "" || r.Kind != pods.Kind || o.Text("spec", "nodeName") != "" || o.Text("status", "phase") != "Pending" {
		return ""
	}
	if o.Named("type", "PodScheduled", "status", "conditions").Text("status") != "" {
		return ""
	}
	created, err := time.Parse(time.RFC3339, o.Text("metadata", "creationTimestamp"))
	if err != nil || now.Sub(created) < schedulerPatience {
		return ""
	}
	return fmt.Sprintf("no scheduler has looked at the Pod, whose schedulerName is %q", o.Text("spec", "schedulerName"))
}
