// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/watch/event"
)

func kind(name string) event.Kind {
	k, group, _ := strings.Cut(name, ".")
	return event.Kind{Group: group, Version: "v1", Kind: k, Resource: strings.ToLower(k) + "s"}
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

// conditions is an object with conditions such as "Ready=False/NotNow/it waits".
func conditions(all ...string) string {
	var list []string
	for _, c := range all {
		name, rest, _ := strings.Cut(c, "=")
		parts := append(strings.SplitN(rest, "/", 3), "", "")
		list = append(list, `{"type":"`+name+`","status":"`+parts[0]+`","reason":"`+parts[1]+`","message":"`+parts[2]+`"}`)
	}
	return `{"status":{"conditions":[` + strings.Join(list, ",") + `]}}`
}

// statuses is a Pod on a Node with containers in these states.
func statuses(all string) string {
	return `{"spec":{"nodeName":"node-1"},"status":{"phase":"Running","containerStatuses":[` + all + `]}}`
}

func TestWhatIsWrongWithAnObject(t *testing.T) {
	for name, test := range map[string]struct {
		kind, object string
		want         string // "; " between two
	}{
		"a Pod that starts": {"Pod", statuses(`{"name":"web","state":{"waiting":{"reason":"ContainerCreating"}}}`), ""},
		"a Pod that runs":   {"Pod", statuses(`{"name":"web","restartCount":7,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1}}}`), ""},
		"an image that cannot be pulled": {"Pod", statuses(`{"name":"web","image":"nginx:x","state":{"waiting":{"reason":"ErrImagePull"}}}`),
			"container web ErrImagePull: nginx:x"},
		"an image, with the reason": {"Pod", statuses(`{"name":"web","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"nginx:x\":\n not found"}}}`),
			`container web ImagePullBackOff: Back-off pulling image "nginx:x": not found`},
		"a ConfigMap that is not there": {"Pod", statuses(`{"name":"web","state":{"waiting":{"reason":"CreateContainerConfigError","message":"configmap \"c\" not found"}}}`),
			`container web CreateContainerConfigError: configmap "c" not found`},
		"a crash loop": {"Pod", statuses(`{"name":"web","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s restarting"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}`),
			"container web CrashLoopBackOff: exit 1, 3 restarts"},
		"a command that is not there": {"Pod", statuses(`{"name":"web","state":{"waiting":{"reason":"RunContainerError","message":"no such file"}}}`),
			"container web RunContainerError: no such file"},
		"out of memory": {"Pod", statuses(`{"name":"web","restartCount":1,"state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}`),
			"container web OOMKilled: exit 137, 1 restart"},
		"a last message": {"Pod", statuses(`{"name":"web","state":{"terminated":{"exitCode":2,"message":"no database\n"}}}`),
			"container web Error: exit 2, no database"},
		"an end that was not wanted": {"Pod", statuses(`{"name":"web","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}`),
			"container web Completed"},
		"an end that was": {"Pod", `{"spec":{"nodeName":"n","restartPolicy":"OnFailure"},"status":{"containerStatuses":[{"name":"web","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`, ""},
		"an init container": {"Pod", `{"spec":{"nodeName":"n"},"status":{"initContainerStatuses":[{"name":"a","state":{"terminated":{"exitCode":0}}},{"name":"b","state":{"terminated":{"exitCode":3,"reason":"Error"}}}]}}`,
			"init container b Error: exit 3"},
		"an ephemeral container": {"Pod", `{"spec":{"nodeName":"n"},"status":{"ephemeralContainerStatuses":[{"name":"debug","image":"i","state":{"waiting":{"reason":"ErrImagePull"}}}]}}`,
			"ephemeral container debug ErrImagePull: i"},
		"a sidecar": {"Pod", `{"spec":{"nodeName":"n","initContainers":[{"name":"log","restartPolicy":"Always"}]},"status":{"initContainerStatuses":[{"name":"log","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`,
			"init container log Completed"},
		"two containers": {"Pod", statuses(`{"name":"a","image":"a","state":{"waiting":{"reason":"ErrImagePull"}}},{"name":"b","state":{"terminated":{"exitCode":1}}}`),
			"container a ErrImagePull: a; container b Error: exit 1"},
		"no Node": {"Pod", conditions("PodScheduled=False/Unschedulable/0/1 nodes are available: 1 Insufficient cpu."),
			"Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."},
		"scheduling gates": {"Pod", conditions("PodScheduled=False/SchedulingGated/waits"), ""},
		"an eviction": {"Pod", `{"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory.","containerStatuses":[{"name":"web","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}}`,
			"Evicted: The node was low on resource: memory.; container web OOMKilled: exit 137"},
		"a preemption": {"Pod", `{"metadata":{"deletionTimestamp":"x"},"status":{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler","message":"default-scheduler: preempting"}]}}`,
			"PreemptionByScheduler: default-scheduler: preempting"},
		"a Pod that is deleted":   {"Pod", `{"metadata":{"deletionTimestamp":"x"},"status":{"phase":"Failed","containerStatuses":[{"name":"web","state":{"terminated":{"exitCode":143,"reason":"Error"}}}]}}`, ""},
		"a resize that cannot be": {"Pod", conditions("PodResizePending=True/Infeasible/no room"), "PodResizePending True (Infeasible): no room"},
		"a resize that waits":     {"Pod", conditions("PodResizePending=True/Deferred/later"), ""},

		"a Node that is well":       {"Node", conditions("MemoryPressure=False", "DiskPressure=False", "PIDPressure=False", "Ready=True"), ""},
		"a Node that is not ready":  {"Node", conditions("DiskPressure=False", "Ready=False/KubeletNotReady/no network"), "Ready False (KubeletNotReady): no network"},
		"a Node that is silent":     {"Node", conditions("MemoryPressure=Unknown", "DiskPressure=Unknown", "Ready=Unknown/NodeStatusUnknown"), "Ready Unknown (NodeStatusUnknown)"},
		"a Node under pressure":     {"Node", conditions("Ready=True", "MemoryPressure=True/KubeletHasInsufficientMemory"), "MemoryPressure True (KubeletHasInsufficientMemory)"},
		"a rollout past its time":   {"Deployment.apps", conditions("Available=False/MinimumReplicasUnavailable", "Progressing=False/ProgressDeadlineExceeded/timed out"), "Progressing False (ProgressDeadlineExceeded): timed out"},
		"a Deployment that starts":  {"Deployment.apps", conditions("Available=False/MinimumReplicasUnavailable", "Progressing=True"), ""},
		"no Pods can be made":       {"ReplicaSet.apps", conditions("ReplicaFailure=True/FailedCreate/quota"), "ReplicaFailure True (FailedCreate): quota"},
		"a Job that failed":         {"Job.batch", conditions("FailureTarget=True/x", "Failed=True/BackoffLimitExceeded"), "Failed True (BackoffLimitExceeded)"},
		"scaled to nothing":         {"HorizontalPodAutoscaler.autoscaling", conditions("ScalingActive=False/ScalingDisabled"), ""},
		"a claim without a volume":  {"PersistentVolumeClaim", `{"status":{"phase":"Lost"}}`, "Lost"},
		"a claim that cannot grow":  {"PersistentVolumeClaim", conditions("Resizing=True", "NodeResizeError=True/x/y"), "NodeResizeError True (x): y"},
		"a volume that failed":      {"PersistentVolume", `{"status":{"phase":"Failed","message":"no space"}}`, "Failed: no space"},
		"a Namespace that stays":    {"Namespace", conditions("NamespaceDeletionDiscoveryFailure=True/DiscoveryFailed", "NamespaceContentRemaining=True/x"), "NamespaceDeletionDiscoveryFailure True (DiscoveryFailed)"},
		"a kind without a schema":   {"CustomResourceDefinition.apiextensions.k8s.io", conditions("NamesAccepted=True", "NonStructuralSchema=True/Violations/x", "Established=True"), "NonStructuralSchema True (Violations): x"},
		"a kind's name is taken":    {"CustomResourceDefinition.apiextensions.k8s.io", conditions("NamesAccepted=False/ListKindConflict", "Established=False/NotAccepted"), "NamesAccepted False (ListKindConflict)"},
		"an API without a server":   {"APIService.apiregistration.k8s.io", conditions("Available=False/MissingEndpoints"), "Available False (MissingEndpoints)"},
		"a custom object, stalled":  {"Widget.example.com", conditions("Ready=False/x", "Stalled=True/Broken"), "Stalled True (Broken)"},
		"a custom object, at work":  {"Widget.example.com", conditions("Ready=False/x"), ""},
		"a custom object, degraded": {"Widget.example.com", conditions("Ready=True", "Degraded=True"), "Degraded True"},
		"an older status":           {"Widget.example.com", `{"metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Stalled","status":"True"}]}}`, ""},
		"Ready of another group":    {"Node.example.com", conditions("Ready=Unknown"), ""},
		"nothing":                   {"ConfigMap", `{"data":{"a":"b"}}`, ""},
		"nonsense":                  {"Pod", `{"metadata":7,"spec":[],"status":{"conditions":{"a":1},"containerStatuses":[1,null,{"state":{"waiting":[]}}]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Now(kind(test.kind), parse(t, test.object)), "; "); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestWhichConditionsAreBad(t *testing.T) {
	for _, test := range []struct {
		kind, condition, status, reason string
		want                            bool
	}{
		{"Pod", "Ready", "False", "ContainersNotReady", true},
		{"Pod", "Ready", "False", "PodCompleted", false},
		{"Pod", "ContainersReady", "False", "", false}, // it follows from Ready
		{"Node", "Ready", "Unknown", "", true},
		{"Node", "DiskPressure", "Unknown", "", false},
		{"Node", "DiskPressure", "True", "", true},
		{"Job.batch", "Complete", "False", "", false},
		{"Widget.example.com", "Ready", "Unknown", "", false},
		{"Widget.example.com", "Ready", "False", "", true},
		{"Widget.example.com", "Painted", "False", "", false},
	} {
		if got := IsBad(kind(test.kind), test.condition, test.status, test.reason); got != test.want {
			t.Errorf("%s of %s %s (%s): bad is %v", test.condition, test.kind, test.status, test.reason, got)
		}
	}
}

// FuzzOf reads any JSON as an object of any of the kinds: it must not panic, and each sentence is
// one line of bounded length.
func FuzzOf(f *testing.F) {
	f.Add("Pod", []byte(statuses(`{"name":"web","restartCount":3,"state":{"terminated":{"exitCode":1,"message":"a\nb"}},"lastState":{"terminated":{"startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:01:00Z"}}}`)))
	f.Add("Node", []byte(conditions("Ready=Unknown/NodeStatusUnknown/silent")))
	f.Add("Widget.example.com", []byte(conditions("Stalled=True/x/y")))
	f.Add("PersistentVolumeClaim", []byte(`{"status":{"phase":"Lost"}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		var o map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(data, &o) != nil {
			return
		}
		signs := Of(kind(name), o)
		tracker := New()
		for range 2 {
			tracker.Observe(Object{Kind: kind(name)}, "u", nil, signs, noon)
		}
		encoded := tracker.Encode(Object{Kind: kind(name)})
		if len(encoded) > mostEncoded {
			t.Fatalf("%d bytes are encoded", len(encoded))
		}
		for _, text := range Now(kind(name), o) {
			if text == "" {
				t.Fatal("a trouble without words")
			}
		}
	})
}
