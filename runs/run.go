// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // the key runs again when something changes
	Again   Outcome = "again"   // the run asked for another one, at a time or when the rate limit allows it
	Failed  Outcome = "error"   // the loop retries the key
	GivenUp Outcome = "givenUp" // the run failed, and the key runs again when something changes
	Panic   Outcome = "panic"   // the reconciler panicked; the loop retries the key
	Stopped Outcome = "stopped" // the run failed because its controller stopped
)

// outcomes is the order in which an entry encodes them. New ones go to the end.
func outcomes() [6]Outcome { return [...]Outcome{Done, Again, Failed, GivenUp, Panic, Stopped} }

// fails reports whether the run ended with an error.
func (o Outcome) fails() bool { return o != Done && o != Again }

// Object identifies an object in the record.
type Object struct {
	Group     string    `json:"group,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
}

// ObjectOf returns the Object of a reference.
func ObjectOf(r object.Ref) Object {
	return Object{Group: r.Group, Kind: r.Kind, Namespace: r.Key.Namespace, Name: r.Key.Name, UID: r.UID}
}

// Ref returns the object as a reference.
func (o Object) Ref() object.Ref {
	return object.Ref{Group: o.Group, Kind: o.Kind, Key: object.Key{Namespace: o.Namespace, Name: o.Name}, UID: o.UID}
}

// String returns "Pod team-a/web-1", without the UID.
func (o Object) String() string { return strings.TrimSpace(o.Ref().String()) }

// same reports whether two objects have the same kind and name, and no different UIDs.
func (o Object) same(other Object) bool {
	if o.UID != "" && other.UID != "" && o.UID != other.UID {
		return false
	}
	return o.Group == other.Group && o.Kind == other.Kind && o.Namespace == other.Namespace && o.Name == other.Name
}

// Cause is one reason why a key was in the queue.
type Cause struct {
	Source string `json:"source"`         // the source that added the key
	Verb   string `json:"verb,omitempty"` // see workqueue.Cause
	Object Object `json:"object"`         // the object that changed; zero if there is none
	// From and Version are its resourceVersions before and after. From is empty for an object that is new, and
	// if the source does not know it.
	From    string `json:"from,omitempty"`
	Version string `json:"version,omitempty"`
}

// String returns, for example, "pods: Updated Pod default/web-1 at 4711".
func (c Cause) String() string {
	return workqueue.Cause{Source: c.Source, Verb: c.Verb, Ref: c.Object.Ref(), Version: c.Version}.String()
}

// Wait is how long a key waited before a run, and for what.
type Wait struct {
	// Delay is how long the run was put off: by the rate limit if Attempt of the run is above 0, and otherwise by
	// the time that the run before asked for, or by the delay of a source.
	Delay time.Duration `json:"delayNs,omitempty"`
	// Before is how long the key then waited for the end of its run before, and for the informers to see what that
	// run wrote. Settled of that run has the second part.
	Before time.Duration `json:"beforeNs,omitempty"`
	// Queue is how long the key then waited for a worker.
	Queue time.Duration `json:"queueNs,omitempty"`
	// Priority is that of the key in the queue.
	Priority int `json:"priority,omitempty"`
}

// Write is one write of a run. The record has no values of fields.
type Write struct {
	Verb        string `json:"verb"` // create, update, patch, delete, deletecollection
	Object      Object `json:"object"`
	Subresource string `json:"subresource,omitempty"`
	// Version is the resourceVersion that the write made. It is empty for a delete, for a write that changed
	// nothing, and for one that failed.
	Version string `json:"version,omitempty"`
	// Code is the HTTP status of a write that the server refused, or to which it answered with a server error, or 0.
	Code int `json:"code,omitempty"`
	// Unknown is set if there was no answer, or a server error: the server may have carried out the write.
	Unknown bool `json:"unknown,omitempty"`
	// Manager is the field manager, if the write named one.
	Manager string `json:"manager,omitempty"`
	// Fields has the paths of the fields that the write changed, such as "spec.replicas". For a patch they are
	// the fields that it names. They are not known of an update if the informer showed its result before the answer
	// of the server arrived. Paths into Secrets end at the field that has the values.
	Fields []string `json:"fields,omitempty"`
	// MoreFields counts the paths that the record did not keep.
	MoreFields int `json:"moreFields,omitempty"`
}

// Refused reports whether the server refused the write, so that nothing has changed.
func (w *Write) Refused() bool { return w.Code != 0 && !w.Unknown }

// Identity identifies a run among those of several managers, each of which numbers its own. Two managers may have a controller of
// one name, with equal numbers for one key, so it has the time as well.
type Identity struct {
	Controller, Key string
	Number          uint64
	Began           int64 // in nanoseconds since 1970
}

// Identity returns the identity of a run.
func (run *Run) Identity() Identity {
	return Identity{run.Controller, run.Key, run.Number, run.Began.UnixNano()}
}

// Run is one run of a controller for a key, as the record has it. Runs that changed nothing and ended alike are one
// Run, which counts them.
type Run struct {
	// Number counts the runs of the record, from 1. Of runs that are counted in one Run it is the number of the first.
	Number     uint64 `json:"number"`
	Controller string `json:"controller"`
	Key        string `json:"key"`
	// Object is the object that the key stands for. It is zero if the keys of the loop are no objects.
	Object   Object        `json:"object"`
	Causes   []Cause       `json:"causes,omitempty"`
	More     int           `json:"moreCauses,omitempty"` // causes that the queue did not keep
	Wait     Wait          `json:"wait"`
	Attempt  int           `json:"attempt,omitempty"` // runs before this one that failed or asked for another one
	Began    time.Time     `json:"began"`
	Took     time.Duration `json:"tookNs"`
	Outcome  Outcome       `json:"outcome"`
	Error    string        `json:"error,omitempty"`
	NextLook *time.Time    `json:"nextLook,omitempty"` // when the key runs again at the latest, if the run or its retry has a time
	Writes   []Write       `json:"writes,omitempty"`
	// MoreWrites counts the writes that the record did not keep: a run may write thousands of objects.
	MoreWrites int      `json:"moreWrites,omitempty"`
	Reasons    []Reason `json:"reasons,omitempty"`
	// Settled is how long after the run the informers had seen its writes; 0 if at once, or not yet.
	Settled time.Duration `json:"settledNs,omitempty"`
	// Runs is how many runs are counted here, at least 1, and Last when the last of them began. Causes and times
	// are those of the first; LastVersion is the version in the first cause of the last.
	Runs        int       `json:"runs"`
	Last        time.Time `json:"last"`
	LastVersion string    `json:"lastVersion,omitempty"`
	// Restored is set for a run of an earlier process, which was read from a [File].
	Restored bool `json:"restored,omitempty"`
	// Contexts are the traceparents of the objects that the run is about, for an observer. The record does not keep them.
	Contexts []string `json:"-"`
}
