// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/worlds"
	"github.com/setpoint-io/setpoint/internal/attachable"
)

// Names of operations.
const (
	opAttach = "attach"
	opDetach = "detach"
)

// step is one thing that a plan does at a place.
type step struct {
	do   what
	node string
	err  error // of stepFailed
	why  force // of stepCheck
}

type what int

const (
	stepKeep     what = iota // note that something needs the volume at the node, and whether the node is going to learn that it is there
	stepUnwanted             // note since when nothing needs the volume at the node
	stepCheck                // begin a detach: ask for the check
	stepCancel               // end a detach that has changed nothing
	stepRefused              // the check has failed: the detach is tried again later
	stepDetach               // the check has passed: delete the VolumeAttachment
	stepAttach               // begin to attach: create the VolumeAttachment
	stepAwait                // a VolumeAttachment exists and is not attached yet: begin to wait
	stepAttached             // the volume is attached: end the operation
	stepFailed               // attaching has failed: end the operation
	stepGiveUp               // nothing waits for the driver to attach any more: end the operation
)

// plan is what a run does about one volume: steps in their order, Events, and why the rest waits.
type plan struct {
	steps   []step
	notes   []note
	reasons []controller.Reason
	again   time.Time // when to look again if nothing changes; zero is never
}

// decide compares where a volume is with where it is to be. Detaches come before attaches.
func decide(v view) plan {
	p := &plan{}
	for i := range v.places {
		if at := &v.places[i]; at.wanted() {
			p.keep(at)
		} else if at.exists() {
			p.leave(v, at)
		}
	}
	// Of two Pods that want an exclusive volume at two nodes, the older one gets it.
	order := make([]*place, 0, len(v.places))
	for i := range v.places {
		if len(v.places[i].users) > 0 {
			order = append(order, &v.places[i])
		}
	}
	slices.SortFunc(order, func(a, b *place) int {
		return cmp.Or(a.users[0].CreationTimestamp.Compare(b.users[0].CreationTimestamp.Time), cmp.Compare(a.node, b.node))
	})
	taken := ""
	for _, at := range order {
		p.arrive(v, at, taken)
		if at.exists() || p.begins(at.node) {
			taken = cmp.Or(taken, at.node)
		}
	}
	return *p
}

func (p *plan) add(do what, node string) { p.steps = append(p.steps, step{do: do, node: node}) }

func (p *plan) begins(node string) bool {
	return slices.ContainsFunc(p.steps, func(s step) bool { return s.node == node && s.do == stepAttach })
}

// at asks for another run at a time.
func (p *plan) at(t time.Time) {
	if !t.IsZero() && (p.again.IsZero() || t.Before(p.again)) {
		p.again = t
	}
}

// attaching returns the operation by which the volume is being attached.
func (p *place) attaching() (worlds.Operation, bool) {
	turn := p.attach
	return turn.Operation, turn.State == worlds.Busy && turn.Operation.Name == opAttach
}

// keep ends what was begun to detach a volume that is wanted again.
func (p *plan) keep(at *place) {
	if at.memory.check.stage != checkNone {
		p.add(stepCancel, at.node)
	}
	if !at.memory.wanted || at.memory.unreported != at.unreported() {
		p.add(stepKeep, at.node)
	}
}

// leave takes a volume that nothing needs away from a node.
func (p *plan) leave(v view, at *place) {
	if at.attachment != nil && at.attachment.DeletionTimestamp != nil {
		p.leaving(v, at)
		return
	}
	if _, attaching := at.attaching(); attaching {
		p.add(stepGiveUp, at.node) // the driver detaches what it has attached until then
		return
	}
	since := at.memory.unwanted
	if since.IsZero() {
		since = v.now
		p.add(stepUnwanted, at.node)
	}
	end := since.Add(v.unmountWait)
	why := at.state.forced(v.forceTimeout && !v.now.Before(end))
	inUse := at.state.inUse || !at.state.exists && !at.memory.notInUse
	if inUse && why == forceNone {
		if at.memory.check.stage != checkNone {
			p.add(stepCancel, at.node)
		}
		p.inUse(v, at, end)
		return
	}
	switch at.memory.check.stage {
	case checkAsked:
		p.because(v, at, codeChecking, "the volume {volume} is checked on node {node} before it is detached", "the check ends")
	case checkPassed:
		p.steps = append(p.steps, step{do: stepDetach, node: at.node, why: at.memory.check.force})
	case checkRefused:
		p.add(stepRefused, at.node)
		p.inUse(v, at, end)
		p.at(v.now.Add(time.Second)) // the wait of the operation is known after the step
	case checkNone:
		if at.detach.State != worlds.Free {
			p.wait(v, at, at.detach)
			return
		}
		p.steps = append(p.steps, step{do: stepCheck, node: at.node, why: why})
	}
}

// leaving is for a volume whose VolumeAttachment is being deleted: its driver detaches it.
func (p *plan) leaving(v view, at *place) {
	text := "the driver {driver} detaches the volume {volume} from node {node}"
	if e := at.attachment.Status.DetachError; e != nil {
		p.because(v, at, codeDetachFails, text+", and has failed: {error}", "the driver succeeds", "driver", v.driver, "error", e.Message)
		p.note(v, at, noteDetachFails(v, at.node, e.Message))
		return
	}
	p.because(v, at, codeDetaching, text, "the driver removes its finalizer from the VolumeAttachment", "driver", v.driver)
	if !at.state.exists {
		p.note(v, at, noteNodeGone(v, at.node))
	}
}

// inUse states why a volume that nothing needs stays where it is.
func (p *plan) inUse(v view, at *place, end time.Time) {
	node, ends := "node {node} is not ready and has the volume {volume} in use", "the kubelet unmounts the volume, or the node gets the taint node.kubernetes.io/out-of-service"
	if !at.state.exists {
		node, ends = "node {node} does not exist any more, and had the volume {volume} in use", "the node is back, and its kubelet unmounts the volume"
	}
	switch {
	case at.state.ready:
		p.because(v, at, codeInUse, "node {node} has the volume {volume} in use", "the kubelet unmounts the volume")
	case !v.forceTimeout:
		p.because(v, at, codeNotReady, node+"; --disable-force-detach-on-timeout is set, so it stays there", ends)
		p.note(v, at, noteNoForce(v, at))
	default:
		p.at(end)
		p.because(v, at, codeNotReady, node+"; it is detached by force at {time}", ends, "time", end.UTC().Format(time.RFC3339))
		p.note(v, at, noteForcedAt(v, at, end))
	}
}

// arrive brings a volume to a node. taken is a node that an exclusive volume goes to before.
func (p *plan) arrive(v view, at *place, taken string) {
	operation, attaching := at.attaching()
	switch {
	case at.memory.check.stage != checkNone:
		// A detach that has changed nothing is called off first.
	case at.attachment != nil && at.attachment.DeletionTimestamp != nil:
		p.because(v, at, codeDetaching, "the volume {volume} is being detached from node {node} and is attached again after that",
			"the driver removes its finalizer from the VolumeAttachment")
	case at.attached:
		if attaching || at.memory.failed {
			p.add(stepAttached, at.node)
		}
		if !at.reported {
			p.because(v, at, codeReporting, "the volume {volume} is attached, and the status of node {node} does not say so yet", "the status of the node is written")
		}
	case at.attachment != nil:
		p.await(v, at, operation, attaching)
	case !at.state.exists || !at.state.managed:
		p.because(v, at, codeNotManaged, "node {node} does not exist, or its kubelet does not leave attaching to the controller", "the node has the annotation "+Annotation)
	case v.exclusive && p.elsewhere(v, at, taken):
		// said by elsewhere
	case at.attach.State != worlds.Free:
		p.wait(v, at, at.attach)
	default:
		p.add(stepAttach, at.node)
	}
}

// await waits for the driver to attach a volume.
func (p *plan) await(v view, at *place, operation worlds.Operation, running bool) {
	switch failed := at.attachment.Status.AttachError; {
	case failed != nil && running:
		p.failed(at, errors.New(failed.Message))
	case running && !v.now.Before(operation.Until):
		p.failed(at, fmt.Errorf("timed out waiting for external-attacher of %s CSI driver to attach volume %s", v.driver, v.handle()))
	case running:
		p.at(operation.Until)
		p.because(v, at, codeAttaching, "the driver {driver} attaches the volume {volume} to node {node}", "the VolumeAttachment says that it is attached", "driver", v.driver)
	case at.attach.State != worlds.Free:
		p.wait(v, at, at.attach)
	default:
		p.add(stepAwait, at.node)
		p.at(v.now.Add(time.Millisecond)) // decide again, with the operation
	}
}

func (p *plan) failed(at *place, err error) {
	p.steps = append(p.steps, step{do: stepFailed, node: at.node, err: err})
}

// handle returns the handle of a volume of a CSI driver.
func (v view) handle() string {
	_, handle, _ := attachable.SplitCSI(v.unique)
	return handle
}

// wait states that an operation has failed and waits for its next try.
func (p *plan) wait(v view, at *place, turn worlds.Turn) {
	o := turn.Operation
	p.at(o.Until)
	text := ""
	if o.Err != nil {
		text = o.Err.Error()
	}
	p.because(v, at, codeBackingOff, "the volume {volume} could not be {operation}ed at node {node}, {failures} {failures?time|times} in a row; the next try is at {time}: {error}", "",
		"operation", o.Name, "failures", o.Failures, "time", o.Until.UTC().Format(time.RFC3339), "error", text)
}

// elsewhere states that an exclusive volume is at another node, and reports whether it is.
func (p *plan) elsewhere(v view, at *place, taken string) bool {
	var nodes []string
	var users []*corev1.Pod
	for i := range v.places {
		if other := &v.places[i]; other.node != at.node && (other.exists() || other.node == taken) {
			nodes = append(nodes, other.node)
			users = append(users, other.users...)
		}
	}
	if len(nodes) == 0 {
		return false
	}
	for _, pod := range at.users {
		reason := controller.Reason{
			Code: codeElsewhere, Text: "the volume {volume} is to be attached to node {node} and is at node {other}{for}",
			Params: controller.With("volume", v.name, "node", at.node, "other", strings.Join(nodes, ", "), "for", forWhom(pod, users)),
			Ends:   "the volume is detached there", About: aboutPod(pod),
		}
		p.reasons = append(p.reasons, reason)
		p.notes = append(p.notes, note{place: at, pod: pod, warning: true, reason: reasonFailedAttach, text: multiAttach(v, pod, users)})
	}
	return true
}
