// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
)

// The reasons of Events. Users match on them.
// Source: k8s.io/kubernetes/pkg/controller, controller_utils.go.
const (
	SuccessfulCreate = "SuccessfulCreate"
	FailedCreate     = "FailedCreate"
	SuccessfulDelete = "SuccessfulDelete"
	FailedDelete     = "FailedDelete"
)

// The actions of Events.
const (
	creating = "CreatePod"
	deleting = "DeletePod"
)

// Writer creates and deletes the Pods of owners. Make one with [New]; a controller
// needs one. It is safe for concurrent use by runs for different owners.
type Writer struct {
	pods    client.Typed[*corev1.Pod]
	events  *events.Recorder
	message func(reason string, owner Owner, pod *corev1.Pod, err error) string
	slot    func(*corev1.Pod) string
	names   names

	beforeCreate, beforeDelete func(context.Context, Owner, *corev1.Pod) error
}

// New returns a Writer that writes with c and records Events with events.
func New(c *client.Client, events *events.Recorder) *Writer {
	return &Writer{pods: client.For[*corev1.Pod](c), events: events, message: message, slot: alike, beforeCreate: unprepared, beforeDelete: unprepared}
}

// alike is the slot of Pods that can stand in for each other.
func alike(*corev1.Pod) string { return "" }

func unprepared(context.Context, Owner, *corev1.Pod) error { return nil }

// WithMessages has the texts of Events made by f, and returns w. Without it they are those of
// a ReplicaSet, a Job and a DaemonSet. reason is one of the reasons of this package, err is
// nil unless it is that of a failure.
func (w *Writer) WithMessages(f func(reason string, owner Owner, pod *corev1.Pod, err error) string) *Writer {
	w.message = f
	return w
}

// WithSlots tells Pods apart that have one generateName but cannot stand in for each other,
// and returns w. slot returns the node of a DaemonSet's Pod, say. A name whose create was lost
// is used again only for a Pod of the same slot. Without WithSlots, all Pods of a generateName
// are alike, as those of a ReplicaSet are.
func (w *Writer) WithSlots(slot func(*corev1.Pod) string) *Writer {
	w.slot = slot
	return w
}

// BeforeCreate has f called once before each Pod is created, and returns w. The Pod has its
// name; a generated one can still change. f creates what the Pod needs, such as the claims of
// a StatefulSet's Pod. If f fails, the Pod is not created: the failure has an Event and ends
// the slow start, as that of a create.
func (w *Writer) BeforeCreate(f func(context.Context, Owner, *corev1.Pod) error) *Writer {
	w.beforeCreate = f
	return w
}

// BeforeDelete has f called before each delete, and returns w. f prepares the Pod: a Job
// removes its finalizer. If f fails, the Pod is not deleted, and no Event is recorded. An
// error that says that the Pod is absent is no failure: the Pod is gone.
func (w *Writer) BeforeDelete(f func(context.Context, Owner, *corev1.Pod) error) *Writer {
	w.beforeDelete = f
	return w
}

func message(reason string, _ Owner, pod *corev1.Pod, err error) string {
	switch reason {
	case SuccessfulCreate:
		return "Created pod: " + pod.Name
	case FailedCreate:
		return fmt.Sprintf("Error creating: %v", err)
	case SuccessfulDelete:
		return "Deleted pod: " + pod.Name
	default:
		return fmt.Sprintf("Error deleting: %v", err)
	}
}

func (w *Writer) normal(owner Owner, reason, action string, pod *corev1.Pod) {
	w.events.Normal(owner.Object, reason, action, "%s", w.message(reason, owner, pod, nil))
}

func (w *Writer) warning(owner Owner, reason, action string, pod *corev1.Pod, err error) {
	w.events.Warning(owner.Object, reason, action, "%s", w.message(reason, owner, pod, err))
}

// Forget drops what is remembered of an owner that does not exist any more.
func (w *Writer) Forget(owner object.Key) { w.names.forget(owner) }
