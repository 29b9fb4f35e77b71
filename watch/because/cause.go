// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package because

import (
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/workqueue"
)

// version identifies a state of an object; of a deletion it has no resourceVersion.
type version struct{ uid, version string }

// versionOf returns the version that an event led to.
func versionOf(e *event.Event) version {
	if e.Verb == event.Deleted {
		return version{uid: string(e.UID)}
	}
	return version{string(e.UID), e.Version}
}

// made returns the versions that a run made.
func made(run *explain.Traced) (all []version) {
	for _, w := range run.Writes {
		switch {
		case w.Object.UID == "" || w.Refused():
		case w.Verb == "delete":
			all = append(all, version{uid: string(w.Object.UID)})
		case w.Version != "":
			all = append(all, version{string(w.Object.UID), w.Version})
		}
	}
	return all
}

// mostSteps bounds the chain of runs that is followed back.
const mostSteps = 16

// causeOf returns the run as the cause of its changes. Words describe a change that was seen.
func causeOf(run *explain.Traced, words func(version) string) *event.Cause {
	cause := &event.Cause{Controller: run.Controller, Run: run.Number}
	first := origin(run.Origins)
	if first == nil {
		return cause
	}
	cause.Object, cause.Verb = first.Cause.Object.String(), verb(first.Cause.Verb)
	cause.Change = words(version{string(first.Cause.Object.UID), first.Cause.Version})
	return cause
}

// origin returns the change of an object that leads furthest back; nil if none is known.
func origin(origins []runs.Origin) (first *runs.Origin) {
	for range mostSteps {
		var earliest *runs.Origin // of those whose run is recorded
		for i := range origins {
			o := &origins[i]
			if o.Cause.Object == (runs.Object{}) {
				continue
			}
			if o.Run != nil && (earliest == nil || o.Run.Began.Before(earliest.Run.Began)) {
				earliest = o
			}
			if first == nil || o.Run == nil && earliest == nil {
				first = o
			}
		}
		if earliest == nil {
			return first
		}
		first = earliest
		if origins = earliest.Origins; len(origins) == 0 {
			return first
		}
	}
	return first
}

// verb says what happened to the object of a cause.
func verb(of string) string {
	switch of {
	case workqueue.Added:
		return "created"
	case workqueue.Deleted:
		return "deleted"
	}
	return "updated"
}
