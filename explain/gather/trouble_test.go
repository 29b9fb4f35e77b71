// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

func TestAPodThatNoSchedulerHasLookedAt(t *testing.T) {
	created := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	const unseen = `no scheduler has looked at the Pod, whose schedulerName is "own"`
	for _, c := range []struct {
		name, spec, status string
		after              time.Duration
		want               []string
	}{
		{"long ago", `"schedulerName": "own"`, `"phase": "Pending"`, schedulerPatience, []string{unseen}},
		{"new", `"schedulerName": "own"`, `"phase": "Pending"`, schedulerPatience - time.Second, nil},
		{"on a Node", `"schedulerName": "own", "nodeName": "a"`, `"phase": "Pending"`, time.Hour, nil},
		{"of another phase", `"schedulerName": "own"`, `"phase": "Failed", "reason": "Evicted"`, time.Hour, []string{"Evicted"}},
		{"no Node fits", `"schedulerName": "own"`,
			`"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]`, time.Hour, []string{"Unschedulable: 0/1 nodes"}},
		{"gated", `"schedulerName": "own", "schedulingGates": [{"name": "a"}]`,
			`"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]`, time.Hour, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var state map[string]any
			text := `{"metadata": {"creationTimestamp": "2026-03-02T12:00:00Z"}, "spec": {` + c.spec + `}, "status": {` + c.status + `}}`
			if err := json.Unmarshal([]byte(text), &state); err != nil {
				t.Fatal(err)
			}
			if got := troubleOf(pods, state, created.Add(c.after)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
