// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/watch/event"
)

func TestReadiness(t *testing.T) {
	for name, test := range map[string]struct {
		obj, text     string
		atRest, known bool
	}{
		"a Deployment that is ready": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2},
  status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}`, "2/2 ready", true, true},
		"a Deployment that nobody has looked at": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, spec: {replicas: 2},
  status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}`, "2/2 ready", false, true},
		"a Deployment on its way": {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3},
  status: {replicas: 4, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 3}}`, "3/3 ready, 2 up to date", false, true},
		"a Deployment with an old Pod left": {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3},
  status: {replicas: 4, updatedReplicas: 3, readyReplicas: 4, availableReplicas: 3}}`, "4/3 ready", false, true},
		"a Deployment past its deadline": {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3},
  status: {replicas: 3, updatedReplicas: 3, readyReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`,
			"1/3 ready, past its deadline", true, true},
		"a Deployment that is paused": {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1, paused: true},
  status: {replicas: 1, readyReplicas: 1}}`, "1/1 ready, paused", true, true},
		"a Deployment scaled to nothing": {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0}, status: {}}`, "0/0 ready", true, true},
		"a Deployment of somebody else":  {`{apiVersion: example.com/v1, kind: Deployment, spec: {replicas: 3}}`, "", true, false},
		"a Deployment being deleted": {`{apiVersion: apps/v1, kind: Deployment, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {replicas: 0}}`,
			"0/0 ready, being deleted", false, true},
		"a StatefulSet that is ready": {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2},
  status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2}}`, "2/2 ready", true, true},
		"a StatefulSet on its way": {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2},
  status: {replicas: 2, readyReplicas: 2, updatedReplicas: 1}}`, "2/2 ready, 1 up to date", false, true},
		"a StatefulSet updated in part": {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}},
  status: {replicas: 2, readyReplicas: 2, updatedReplicas: 1}}`, "2/2 ready", true, true},
		"a StatefulSet updated by hand": {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, updateStrategy: {type: OnDelete}},
  status: {replicas: 2, readyReplicas: 2}}`, "2/2 ready", true, true},
		"a DaemonSet that is ready": {`{apiVersion: apps/v1, kind: DaemonSet, status: {desiredNumberScheduled: 3, numberReady: 3, numberAvailable: 3, updatedNumberScheduled: 3}}`,
			"3/3 ready", true, true},
		"a DaemonSet on its way": {`{apiVersion: apps/v1, kind: DaemonSet, status: {desiredNumberScheduled: 3, numberReady: 2, numberAvailable: 2, updatedNumberScheduled: 1}}`,
			"2/3 ready, 1 up to date", false, true},
		"a DaemonSet updated by hand": {`{apiVersion: apps/v1, kind: DaemonSet, spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 1, numberReady: 1, numberAvailable: 1}}`,
			"1/1 ready", true, true},
		"a ReplicaSet that is ready":         {`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 1}, status: {replicas: 1, readyReplicas: 1, availableReplicas: 1}}`, "1/1 ready", true, true},
		"a ReplicaSet on its way":            {`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 1}, status: {replicas: 1}}`, "0/1 ready", false, true},
		"a ReplicationController":            {`{apiVersion: v1, kind: ReplicationController, spec: {}, status: {replicas: 1, readyReplicas: 1, availableReplicas: 1}}`, "1/1 ready", true, true},
		"a Job at work":                      {`{apiVersion: batch/v1, kind: Job, spec: {completions: 5}, status: {succeeded: 2, active: 1}}`, "2/5 succeeded", false, true},
		"a Job that is complete":             {`{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`, "complete, 1/1 succeeded", true, true},
		"a Job that failed":                  {`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, "failed, 0/1 succeeded: BackoffLimitExceeded", true, true},
		"a Job that is suspended":            {`{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}`, "suspended, 0/1 succeeded", true, true},
		"a Pod that is ready":                {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, ready: true}]}}`, "Running, 1/1 ready", true, true},
		"a Pod that crashes":                 {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{ready: true}, {ready: false, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, "Running, 1/2 ready: CrashLoopBackOff", false, true},
		"a Pod without a node":               {`{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`, "Pending: Unschedulable", false, true},
		"a Pod that was just created":        {`{apiVersion: v1, kind: Pod}`, "Pending", false, true},
		"a Pod that is done":                 {`{apiVersion: v1, kind: Pod, status: {phase: Succeeded}}`, "Succeeded", true, true},
		"a Pod that was evicted":             {`{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted}}`, "Failed: Evicted", true, true},
		"a Node that is ready":               {`{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: "True"}]}}`, "ready", true, true},
		"a Node that is not ready":           {`{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: "False", reason: KubeletNotReady}]}}`, "not ready: KubeletNotReady", false, true},
		"a Node that is not heard of":        {`{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown}]}}`, "not heard of: NodeStatusUnknown", true, true},
		"a custom object that is ready":      {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}]}}`, "ready", true, true},
		"a custom object that is not":        {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False", reason: Waiting}]}}`, "not ready: Waiting", false, true},
		"a custom object that is stuck":      {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False", reason: A}, {type: Stalled, status: "True", reason: B}]}}`, "not ready: B", true, true},
		"a custom object that is worked on":  {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}}`, "reconciling", false, true},
		"a custom object with an old status": {`{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, "its newest spec not observed", false, true},
		"an APIService that is available":    {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "True"}]}}`, "available", true, true},
		"an object that says nothing":        {`{apiVersion: v1, kind: ConfigMap, data: {a: b}}`, "", true, false},
		"an object with other types in it":   {`{apiVersion: example.com/v1, kind: Widget, status: {conditions: {Ready: true}}}`, "", true, false},
		"a Pod with other types in it":       {`{apiVersion: v1, kind: Pod, status: [1]}`, "Pending", false, true},
		"nothing":                            {`null`, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var obj map[string]any
			if err := yaml.Unmarshal([]byte(test.obj), &obj); err != nil {
				t.Fatal(err)
			}
			apiVersion, _ := obj["apiVersion"].(string)
			kind, _ := obj["kind"].(string)
			group, _, grouped := strings.Cut(apiVersion, "/")
			if !grouped {
				group = ""
			}
			text, atRest, known := readiness(event.Kind{Group: group, Kind: kind}, obj)
			if text != test.text || atRest != test.atRest || known != test.known {
				t.Errorf("%q, at rest %v, known %v; want %q, %v, %v", text, atRest, known, test.text, test.atRest, test.known)
			}
		})
	}
}
