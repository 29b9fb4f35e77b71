// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
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
	events  *controller.Recorder
	message func(reason string, owner Owner, pod *corev1.Pod, err error) string
	names   names
}

// New returns a Writer that writes with c and records Events with events.
func New(c *client.Client, events *controller.Recorder) *Writer {
	return &Writer{pods: client.For[*corev1.Pod](c), events: events, message: message}
}

// WithMessages has the texts of Events made by f, and returns w. Without it they are those of
// a ReplicaSet, a Job and a DaemonSet. reason is one of the reasons of this package, err is
// nil unless it is that of a failure.
func (w *Writer) WithMessages(f func(reason string, owner Owner, pod *corev1.Pod, err error) string) *Writer {
	w.message = f
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
	w.events.Normal(owner.Object, owner.Kind, reason, action, "%s", w.message(reason, owner, pod, nil))
}

func (w *Writer) warning(owner Owner, reason, action string, pod *corev1.Pod, err error) {
	w.events.Warning(owner.Object, owner.Kind, reason, action, "%s", w.message(reason, owner, pod, err))
}

// Forget drops what is remembered of an owner that does not exist any more.
func (w *Writer) Forget(owner object.Key) { w.names.forget(owner) }
