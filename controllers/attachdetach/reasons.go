// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the reasons why a volume is not where it is to be.
const (
	codeAttaching   = "VolumeIsBeingAttached"
	codeBackingOff  = "VolumeOperationBacksOff"
	codeChecking    = "VolumeIsBeingChecked"
	codeDetachFails = "VolumeCannotBeDetached"
	codeDetaching   = "VolumeIsBeingDetached"
	codeElsewhere   = "VolumeIsAttachedElsewhere"
	codeInUse       = "VolumeIsInUse"
	codeNotManaged  = "NodeIsNotManaged"
	codeNotReady    = "VolumeIsInUseOfNodeNotReady"
	codeReporting   = "AttachmentIsNotReported"
)

// because adds a reason about a place. The Pods that wait for the volume are those that it is
// about: those of the place, or of the other places if the volume is to leave this one.
func (p *plan) because(v view, at *place, code, text, ends string, params ...any) {
	reason := controller.Reason{
		Code: code, Text: text, Ends: ends,
		Params: controller.With(append([]any{"volume", v.name, "node", at.node}, params...)...),
	}
	waiting := v.waiting(at)
	if len(waiting) == 0 {
		p.reasons = append(p.reasons, reason)
	}
	for _, pod := range waiting {
		reason.About = aboutPod(pod)
		p.reasons = append(p.reasons, reason)
	}
}

// waiting returns the Pods that wait for what happens at a place.
func (v view) waiting(at *place) []*corev1.Pod {
	if len(at.users) > 0 {
		return at.users
	}
	var pods []*corev1.Pod
	for i := range v.places {
		if other := &v.places[i]; v.exclusive && !other.attached {
			pods = append(pods, other.users...)
		}
	}
	return pods
}

func aboutPod(pod *corev1.Pod) runs.Object {
	return runs.ObjectOf(object.Ref{Kind: "Pod", Key: object.KeyOf(pod), UID: pod.UID})
}

// forWhom names the Pods that a volume is at another node for, as far as the namespace of the
// waiting Pod has them.
func forWhom(pod *corev1.Pod, users []*corev1.Pod) string {
	names, others := usersOf(pod, users)
	switch {
	case len(names) > 0 && others > 0:
		return fmt.Sprintf(", for the Pods %s and %d Pods of other namespaces", strings.Join(names, ", "), others)
	case len(names) > 0:
		return ", for the Pods " + strings.Join(names, ", ")
	case others > 0:
		return fmt.Sprintf(", for %d Pods of other namespaces", others)
	}
	return ""
}

// usersOf returns the names of the Pods of the namespace of a Pod, and how many others there are.
// A user of a namespace must not see names of another one.
func usersOf(pod *corev1.Pod, users []*corev1.Pod) (names []string, others int) {
	for _, user := range users {
		if user.Namespace == pod.Namespace {
			names = append(names, user.Name)
		} else {
			others++
		}
	}
	return names, others
}
