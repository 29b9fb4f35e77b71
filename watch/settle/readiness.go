// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Readiness returns in words how far an object has come, "7/10 ready", and whether it is at
// rest: nobody is at work to change that. An object of a kind that says nothing of the
// sort is not known, and then it is at rest.
//
// What is wrong for good is at rest too: a Job that failed, a rollout past its deadline.
//
// Sources: the conditions that kubectl rollout status waits for, and those of
// https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus.
func Readiness(obj map[string]any) (text string, atRest, known bool) {
	kind, _ := obj["kind"].(string)
	group, _, grouped := strings.Cut(tree{obj}.text("apiVersion"), "/")
	if !grouped {
		group = ""
	}
	return readiness(event.Kind{Group: group, Kind: kind}, obj)
}

// readiness is Readiness where the object itself may not say its kind, as in a list.
func readiness(kind event.Kind, obj map[string]any) (text string, atRest, known bool) {
	if obj == nil {
		return "", true, false
	}
	o := tree{obj}
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
	if o.text("metadata", "deletionTimestamp") != "" {
		return text + ", being deleted", false, true
	}
	return text, atRest, true
}

// observed reports whether who looks after the object has seen its newest spec.
func observed(o tree) bool {
	return o.number(0, "status", "observedGeneration") >= o.number(0, "metadata", "generation")
}

func deployment(o tree) (string, bool) {
	want, ready := o.number(1, "spec", "replicas"), o.number(0, "status", "readyReplicas")
	text := fmt.Sprintf("%d/%d ready", ready, want)
	if !observed(o) {
		return text, false
	}
	if _, reason := o.condition("Progressing"); reason == "ProgressDeadlineExceeded" {
		return text + ", past its deadline", true
	}
	updated := o.number(0, "status", "updatedReplicas")
	rests := updated == want && o.number(0, "status", "replicas") == want && o.number(0, "status", "availableReplicas") == want
	if o.flag("spec", "paused") {
		return text + ", paused", o.number(0, "status", "replicas") == want && ready == want
	}
	if updated < want {
		text += fmt.Sprintf(", %d up to date", updated)
	}
	return text, rests
}

func statefulSet(o tree) (string, bool) {
	want, ready := o.number(1, "spec", "replicas"), o.number(0, "status", "readyReplicas")
	text := fmt.Sprintf("%d/%d ready", ready, want)
	rests := observed(o) && ready == want && o.number(0, "status", "replicas") == want
	if o.text("spec", "updateStrategy", "type") == "OnDelete" {
		return text, rests
	}
	updated := o.number(0, "status", "updatedReplicas")
	toUpdate := max(want-o.number(0, "spec", "updateStrategy", "rollingUpdate", "partition"), 0)
	if updated < toUpdate {
		text += fmt.Sprintf(", %d up to date", updated)
	}
	return text, rests && updated >= toUpdate
}

func daemonSet(o tree) (string, bool) {
	want, ready := o.number(0, "status", "desiredNumberScheduled"), o.number(0, "status", "numberReady")
	text := fmt.Sprintf("%d/%d ready", ready, want)
	rests := observed(o) && o.number(0, "status", "numberAvailable") == want
	if o.text("spec", "updateStrategy", "type") == "OnDelete" {
		return text, rests
	}
	updated := o.number(0, "status", "updatedNumberScheduled")
	if updated < want {
		text += fmt.Sprintf(", %d up to date", updated)
	}
	return text, rests && updated == want
}

func replicaSet(o tree) (string, bool) {
	want, ready := o.number(1, "spec", "replicas"), o.number(0, "status", "readyReplicas")
	rests := observed(o) && o.number(0, "status", "replicas") == want && o.number(0, "status", "availableReplicas") == want
	return fmt.Sprintf("%d/%d ready", ready, want), rests
}

func job(o tree) (string, bool) {
	done := fmt.Sprintf("%d/%d succeeded", o.number(0, "status", "succeeded"), o.number(1, "spec", "completions"))
	if status, _ := o.condition("Complete"); status == "True" {
		return "complete, " + done, true
	}
	if status, reason := o.condition("Failed"); status == "True" {
		return because("failed, "+done, reason), true
	}
	if o.flag("spec", "suspend") {
		return "suspended, " + done, o.number(0, "status", "active") == 0
	}
	return done, false
}

func pod(o tree) (string, bool) {
	phase := o.text("status", "phase")
	switch phase {
	case "Succeeded", "Failed":
		return because(phase, o.text("status", "reason")), true
	case "":
		phase = "Pending"
	}
	ready, all, why := 0, 0, ""
	for _, status := range o.list("status", "containerStatuses") {
		all++
		if status.flag("ready") {
			ready++
		}
		if why == "" {
			why = status.text("state", "waiting", "reason")
		}
	}
	status, reason := o.condition("Ready")
	if all == 0 {
		if _, scheduled := o.condition("PodScheduled"); scheduled != "" {
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

// node is at rest if it is ready, and if nobody hears of it: nothing is under way then
// that could be waited for.
func node(o tree) (string, bool) {
	status, reason := o.condition("Ready")
	switch status {
	case "True":
		return "ready", true
	case "Unknown":
		return because("not heard of", reason), true
	}
	return because("not ready", reason), false
}

// custom is for kinds that follow the conventions for conditions.
func custom(o tree) (text string, atRest, known bool) {
	for _, name := range []string{"Ready", "Available"} {
		status, reason := o.condition(name)
		if status == "" {
			continue
		}
		if seen, generation := o.number(-1, "status", "observedGeneration"), o.number(-1, "metadata", "generation"); seen >= 0 && seen < generation {
			return "its newest spec not observed", false, true
		}
		if busy, why := o.condition("Reconciling"); busy == "True" {
			return because("reconciling", why), false, true
		}
		if status == "True" {
			return strings.ToLower(name), true, true
		}
		stalled, why := o.condition("Stalled")
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
