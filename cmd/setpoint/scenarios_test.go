// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// scenarios are what "setpoint explain" must have an answer to. Each has a scene of TestExplain, the file of the scene with the whole answer, and
// what the first sentence of the answer says.
var scenarios = []struct{ what, script, file, sentence string }{
	{"an image that cannot be pulled: the Deployment", "image", "want", `Pods are available.*ImagePullBackOff.*"registry.invalid/web:1" not found`},
	{"an image that cannot be pulled: the Pod", "image", "pod", `^Container web ImagePullBackOff`},
	{"a quota that is used up: the Deployment", "quota", "want", `ResourceQuota small leaves no room.*requested pods=1, used pods=2 of pods=2`},
	{"a quota that is used up: the ReplicaSet", "quota", "set", `^The ResourceQuota small leaves no room`},
	{"a quota that is used up: the quota", "quota", "budget", `no room left for pods: used 2 of 2`},
	{"no node fits", "no-node-fits", "want", `^Unschedulable: 0/4 nodes are available: 1 Insufficient cpu`},
	{"a missing ServiceAccount", "account", "want", `the ServiceAccount missing does not exist`},
	{"a finalizer that no program serves", "finalizer", "want", `being deleted.*until the finalizer example.com/kept is removed`},
	{"a namespace with a finalizer", "namespace", "want", `being deleted.*finalizer example.com/kept`},
	{"a namespace that does not end because of an API group that is away", "namespace", "away", `being deleted.*away.example.com/v1`},
	{"a paused rollout", "paused", "want", `^The rollout is paused`},
	{"a rollout held by maxUnavailable", "max-unavailable", "want", `4 must be \(maxUnavailable\)`},
	{"a missed progress deadline", "deadline", "want", `no progress for 2 s \(progressDeadlineSeconds\)`},
	{"an admission webhook that is down", "webhook", "want", `webhook check.example.com cannot be called`},
	{"a missing right of the manager", "right", "want", `replication-controller may not create Pod`},
	{"a silent node", "silent-node", "want", `^Ready Unknown.*stopped posting`},
	{"the Deployment of a silent node", "silent-node", "deployment", `0 of 2 Pods are available.*Node node-3.*stopped posting`},
	{"a Pod of a silent node", "silent-node", "pod", `tolerates the taints of node node-3 until`},
	{"a Pod deleted by a user", "deleted-by-user", "want", `no controller of the record deleted it, so a user or another program did`},
	{"a Pod deleted by garbage collection", "deleted-by-collector", "want", `garbage-collector-controller deleted it.*because ReplicaSet.apps \S+ was deleted`},
	{"a Pod evicted by a taint", "evicted", "want", `taint-eviction-controller deleted it.*does not tolerate the taint broken=disk:NoExecute of Node node-2`},
	{"a Pod that had to go for one of a higher priority", "preempted", "want", `does not exist.*PreemptionByScheduler`},
	{"a Pod that is being evicted by a user", "evicted", "drained", `EvictionByEvictionAPI`},
	{"a Pod that was evicted by a user", "evicted", "gone", `does not exist.*EvictionByEvictionAPI`},
	{"a controller that fights with another program", "fight", "want", `deployment-controller has changed spec.replicas.*it fights with scaler`},
	{"two controllers that fight", "turns", "want", `The controller left has changed data.side.*it fights with right`},
	{"a hot loop", "hot-loop", "want", `The controller polisher has run.*without effect`},
	{"a reconcile that waits for its own write", "own-write", "want", `keeper waits for its own write of Secret own-write/box: the watch of secrets lags`},
	{"everything in order", "in-order", "want", `^All is as it should be`},
	{"StatefulSet: a Pod that is not ready", "statefulset", "want", `waits for Pod db-0`},
	{"StatefulSet: an update on delete", "statefulset", "kept", `the strategy OnDelete does not replace it`},
	{"DaemonSet: no node", "daemonset", "lonely", `fits the node selector`},
	{"DaemonSet: a rollout that is stuck", "daemonset", "want", `The rollout waits for 1 node without an available Pod`},
	{"CronJob: suspended", "cronjob", "nightly", `^The CronJob is suspended`},
	{"CronJob: the last Job runs", "cronjob", "want", `still runs, and concurrencyPolicy is Forbid`},
	{"Job: failed", "job", "want", `The Job has ended \(Failed\).*exit 3`},
	{"Job: suspended", "job", "later", `^The Job is suspended`},
	{"HorizontalPodAutoscaler: no target", "autoscaler", "want", `Deployment nowhere cannot be read`},
	{"HorizontalPodAutoscaler: no metrics", "autoscaler", "blind", `missing request for cpu`},
	{"PersistentVolumeClaim: no volume", "claim", "want", `No free volume fits the claim`},
	{"PersistentVolumeClaim: no storage class", "claim", "gold", `storage class gold does not exist`},
	{"PodDisruptionBudget: used up", "budget", "want", `allows no eviction: 0 of its Pods are healthy`},
	{"PodDisruptionBudget: no Pods", "budget", "nothing", `expects no Pods`},
	{"without a manager: an image", "without-manager", "want", `ImagePullBackOff`},
	{"without a manager: no node fits", "without-manager", "pod", `Insufficient cpu`},
	{"without a manager: a quota", "without-manager", "quota", `exceeded quota: small`},
	{"without a manager: a finalizer", "without-manager", "finalizer", `finalizer example.com/kept`},
	{"an Event with HTML and control sequences", "bad-input", "hostile", `NotMuchKnown|All is as it should be`},
	{"names of programs with HTML and control sequences", "bad-input", "named", `All is as it should be`},
	{"a thousand objects below one, and a scheduler that does not run", "many", "want", `no scheduler has looked at the Pod, whose schedulerName is "nobody" \(and 499 more`},
	{"an object of nearly a megabyte", "bad-input", "huge", `All is as it should be`},
}

// Each scenario has a scene, whose first sentence names the cause.
func TestEachScenarioOfExplainHasAScene(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.what, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join(explainScripts, s.script+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			compared := regexp.MustCompile(`(?m)^explained .* ` + regexp.QuoteMeta(s.file) + `( '.*')?$`)
			if !compared.Match(archive.Comment) {
				t.Errorf("the script %s does not compare an answer with %s", s.script, s.file)
			}
			for _, f := range archive.Files {
				if f.Name != s.file {
					continue
				}
				if said := sentence(string(f.Data)); !regexp.MustCompile(s.sentence).MatchString(said) {
					t.Errorf("the first sentence is %q, want one that matches %q", said, s.sentence)
				}
				return
			}
			t.Errorf("the script %s has no file %s", s.script, s.file)
		})
	}
}
