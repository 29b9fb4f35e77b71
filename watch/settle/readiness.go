// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/watch/event"
)

// readiness returns in words how far an object has come, "7/10 ready", and whether it is at
// rest: nothing is at work to change that. An object of a kind that says nothing of the
// sort is not known, and then it is at rest. What is wrong for good is at rest too: a Job
// that failed, a rollout past its deadline.
//
// Sources: the conditions that kubectl rollout status waits for, and those of
// https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus.
func readiness(kind event.Kind, obj map[string]any) (text string, atRest, known bool) {
	if obj == nil {
		return "", true, false
	}
	o := jsontree.Tree{Value: obj}
	switch kind.Kind + "." + kind.Group { // others have kinds of these names, too
	case "Deployment.apps":
		text, atRest = deployment(o)
	case "StatefulSet.apps":
		text, atRest = statefulSet(o)
	case "DaemonSet.apps":
		text, atRest = daemonSet(o)
	case "ReplicaSet.apps", "ReplicationController.":
		text, atRest = replicaSet(o)
	case "Job.batch":
		text, atRest = job(o)
	case "Pod.":
		text, atRest = pod(o)
	case "Node.":
		text, atRest = node(o)
	default:
		if text, atRest, known = custom(o); !known {
			return "", true, false
		}
	}
	if o.Text("metadata", "deletionTimestamp") != "" {
		return text + ", being deleted", false, true
	}
	return text, atRest, true
}

// Rests reports whether an object is at rest, as far as its kind says.
func Rests(kind event.Kind, obj map[string]any) bool {
	_, atRest, _ := readiness(kind, obj)
	return atRest
}

// observed reports whether the object's controller has seen its newest spec.
func observed(o jsontree.Tree) bool {
	return o.Number(0, "status", "observedGeneration") >= o.Number(0, "metadata", "generation")
}

func deployment(o jsontree.Tree) (string, bool) {
	want, ready := o.Number(1, "spec", "replicas"), o.Number(0, "status", "readyReplicas")
	text := fmt.Sprintf("%d/%d ready", ready, want)
	if !observed(o) {
		return text, false
	}
	if _, reason := condition(o, "Progressing"); reason == "ProgressDeadlineExceeded" {
		return text + ", past its deadline", true
	}
	updated := o.Number(0, "status", "updatedReplicas")
	rests := updated == want && o.Number(0, "status", "replicas") == want && o.Number(0, "status", "availableReplicas") == want
	if o.Flag("spec", "paused") {
		return text + ", paused", o.Number(0, "status", "replicas") == want && ready == want
	}
	if updated < want {
		text += fmt.Sprintf(", %d up to date", updated)
	}
	return text, rests
}

func statefulSet(o jsontree.Tree) (string, bool) {
	want, ready := o.Number(1, "spec", "replicas"), o.Number(0, "status", "readyReplicas")
	text := fmt.Sprintf("%d/%d ready", ready, want)
	rests := observed(o) && ready == want && o.Number(0, "status", "replicas") == want
	if o.Text("spec", "updateStrategy", "type") == "OnDelete" {
		return text, rests
	}
	updated := o.Number(0, "status", "updatedReplicas")
	toUpdate := max(want-o.Number(0, "spec", "updateStrategy", "rollingUpdate", "partition"), 0)
	if updated < toUpdate {
		text += fmt.Sprintf(", %d up to date", updated)
	}
	return text, rests && updated >= toUpdate
}

func daemonSet(o jsontree.Tree) (string, bool) {
	want, ready := o.Number(0, "status", "desiredNumberScheduled"), o.Number(0, "status", "numberReady")
	text := fmt.Sprintf("%d/%d ready", ready, want)
	rests := observed(o) && o.Number(0, "status", "numberAvailable") == want
	if o.Text("spec", "updateStrategy", "type") == "OnDelete" {
		return text, rests
	}
	updated := o.Number(0, "status", "updatedNumberScheduled")
	if updated < want {
		text += fmt.Sprintf(", %d up to date", updated)
	}
	return text, rests && updated == want
}

func replicaSet(o jsontree.Tree) (string, bool) {
	want, ready := o.Number(1, "spec", "replicas"), o.Number(0, "status", "readyReplicas")
	rests := observed(o) && o.Number(0, "status", "replicas") == want && o.Number(0, "status", "availableReplicas") == want
	return fmt.Sprintf("%d/%d ready", ready, want), rests
}

func job(o jsontree.Tree) (string, bool) {
	done := fmt.Sprintf("%d/%d succeeded", o.Number(0, "status", "succeeded"), o.Number(1, "spec", "completions"))
	if status, _ := condition(o, "Complete"); status == "True" {
		return "complete, " + done, true
	}
	if status, reason := condition(o, "Failed"); status == "True" {
		return because("failed, "+done, reason), true
	}
	if o.Flag("spec", "suspend") {
		return "suspended, " + done, o.Number(0, "status", "active") == 0
	}
	return done, false
}

func pod(o jsontree.Tree) (string, bool) {
	phase := o.Text("status", "phase")
	switch phase {
	case "Succeeded", "Failed":
		return because(phase, o.Text("status", "reason")), true
	case "":
		phase = "Pending"
	}
	ready, all, why := 0, 0, ""
	for _, status := range o.List("status", "containerStatuses") {
		all++
		if status.Flag("ready") {
			ready++
		}
		if why == "" {
			why = status.Text("state", "waiting", "reason")
		}
	}
	status, reason := condition(o, "Ready")
	if all == 0 {
		if _, scheduled := condition(o, "PodScheduled"); scheduled != "" {
			reason = scheduled
		}
		return because(phase, reason), status == "True"
	}
	text := fmt.Sprintf("%s, %d/%d ready", phase, ready, all)
	if status == "True" {
		return text, true
	}
	return because(text, why), false
}

// node is at rest if it is ready, and if it sends no heartbeats: nothing is under way then
// that could be waited for.
func node(o jsontree.Tree) (string, bool) {
	status, reason := condition(o, "Ready")
	switch status {
	case "True":
		return "ready", true
	case "Unknown":
		return because("not heard of", reason), true
	}
	return because("not ready", reason), false
}

// custom is for kinds that follow the conventions for conditions.
func custom(o jsontree.Tree) (text string, atRest, known bool) {
	for _, name := range []string{"Ready", "Available"} {
		status, reason := condition(o, name)
		if status == "" {
			continue
		}
		if seen, generation := o.Number(-1, "status", "observedGeneration"), o.Number(-1, "metadata", "generation"); seen >= 0 && seen < generation {
			return "its newest spec not observed", false, true
		}
		if busy, why := condition(o, "Reconciling"); busy == "True" {
			return because("reconciling", why), false, true
		}
		if status == "True" {
			return strings.ToLower(name), true, true
		}
		stalled, why := condition(o, "Stalled")
		if why != "" && stalled == "True" {
			reason = why
		}
		return because("not "+strings.ToLower(name), reason), stalled == "True", true
	}
	return "", true, false
}

func because(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// condition returns the status and the reason of a condition; both are empty if the object
// has no such condition.
func condition(o jsontree.Tree, name string) (status, reason string) {
	c := o.Named("type", name, "status", "conditions")
	return c.Text("status"), c.Text("reason")
}
