// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// Reasons of Events on Pods.
// Source: k8s.io/kubernetes/pkg/kubelet/events.
const (
	reasonFailedAttach = "FailedAttachVolume"
	reasonAttached     = "SuccessfulAttachVolume"

	// reasonFailedDetach is of an Event that kube-controller-manager does not have: the Pods that
	// wait for a volume learn why it does not come.
	reasonFailedDetach = "FailedDetachVolume"
	// reasonWaits is of another one: it says for what and until when a Pod waits.
	reasonWaits = "WaitingForVolumeDetach"
)

// Actions of Events.
const (
	actionAttach = "AttachVolume"
	actionDetach = "DetachVolume"
)

// note is an Event about a wait, which is recorded once for a Pod at a place.
type note struct {
	place   *place
	pod     *corev1.Pod
	warning bool
	reason  string
	text    string
}

// planned returns the note as an Event.
func (n note) planned() events.Planned {
	action := actionAttach
	if n.reason != reasonFailedAttach {
		action = actionDetach
	}
	return events.Planned{Warning: n.warning, Reason: n.reason, Action: action, Note: n.text}
}

// note adds an Event for each Pod that waits for what happens at a place.
func (p *plan) note(v view, at *place, n note) {
	n.place = at
	for _, n.pod = range v.waiting(at) {
		p.notes = append(p.notes, n)
	}
}

// multiAttach is the text for a Pod whose volume is at another node for other Pods, or for none.
// Source: k8s.io/kubernetes/pkg/controller/volume/attachdetach/reconciler, reportMultiAttachError.
func multiAttach(v view, pod *corev1.Pod, users []*corev1.Pod) string {
	names, others := usersOf(pod, users)
	text := "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node"
	switch {
	case len(names) > 0 && others > 0:
		text = fmt.Sprintf("Volume is already used by pod(s) %s and %d pod(s) in different namespaces", strings.Join(names, ", "), others)
	case len(names) > 0:
		text = "Volume is already used by pod(s) " + strings.Join(names, ", ")
	case others > 0:
		text = fmt.Sprintf("Volume is already used by %d pod(s) in different namespaces", others)
	}
	return fmt.Sprintf("Waiting for detach for volume %q %s", v.name, text)
}

// attachFailed is the text for a Pod whose volume could not be attached.
// Source: k8s.io/kubernetes/pkg/volume/util/operationexecutor.
func attachFailed(v view, err error) string {
	return fmt.Sprintf("AttachVolume.Attach failed for volume %q : %v", v.name, err)
}

// attachSucceeded is the text for a Pod whose volume is attached. The space at its end is
// upstream's.
func attachSucceeded(v view) string {
	return fmt.Sprintf("AttachVolume.Attach succeeded for volume %q ", v.name)
}

func noteDetachFails(v view, node, failure string) note {
	return note{warning: true, reason: reasonFailedDetach, text: fmt.Sprintf("DetachVolume.Detach failed for volume %q on node %s : %s", v.name, node, failure)}
}

func noteNodeGone(v view, node string) note {
	return note{warning: true, reason: reasonFailedDetach, text: fmt.Sprintf(
		"Volume %q is being detached from node %s, which does not exist any more: the driver %s may wait for it. If the machine is gone, "+
			"see the logs of the driver's external-attacher", v.name, node, v.driver)}
}

func noteForcedAt(v view, at *place, end time.Time) note {
	return note{reason: reasonWaits, text: fmt.Sprintf(
		"Volume %q is in use of node %s, %s: it is detached by force at %s, or at once if the node gets the taint %s",
		v.name, at.node, notReady(at), end.UTC().Format(time.RFC3339), corev1.TaintNodeOutOfService)}
}

func noteNoForce(v view, at *place) note {
	return note{reason: reasonWaits, text: fmt.Sprintf(
		"Volume %q is in use of node %s, %s: it stays there until the node unmounts it, or gets the taint %s",
		v.name, at.node, notReady(at), corev1.TaintNodeOutOfService)}
}

func notReady(at *place) string {
	if !at.state.exists {
		return "which does not exist any more"
	}
	return "which is not ready"
}
