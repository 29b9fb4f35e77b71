// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

// Planned is an Event that a controller has decided on and not yet recorded. Two of them can be
// compared with ==.
type Planned struct {
	Warning bool   // the type of the Event; false is Normal
	Reason  string // one word in CamelCase, which users may depend on
	Action  string // what the controller did or tried
	Note    string // for users
}

// List is the Events of one plan, in the order in which they are to be recorded. A controller
// that decides in a pure function returns a List with its plan, and records it with
// [Recorder.Record] when it carries out the plan. A test of the function compares the list.
//
// The zero List is empty and ready for use. A List is not safe for concurrent use.
type List []Planned

// Normal adds an Event of type Normal. The arguments are those of [Recorder.Normal].
func (l *List) Normal(reason, action, format string, args ...any) {
	*l = append(*l, Planned{Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)})
}

// Warning adds an Event of type Warning. The arguments are those of [Recorder.Warning].
func (l *List) Warning(reason, action, format string, args ...any) {
	*l = append(*l, Planned{Warning: true, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...)})
}

// Record records planned Events about one object, in their order. All else is as for
// [Recorder.Normal] and [Recorder.Warning].
func (r *Recorder) Record(about object.Object, planned ...Planned) {
	for _, p := range planned {
		r.record(about, p.kind(), p.Reason, p.Action, p.Note)
	}
}

func (p Planned) kind() string {
	if p.Warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
