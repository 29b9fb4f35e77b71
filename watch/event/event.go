// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Verb says what happened to an object.
type Verb string

// The verbs.
const (
	// Created: the object is there, and was not.
	Created Verb = "created"
	// Updated: the object has changed.
	Updated Verb = "updated"
	// Deleted: the object is gone.
	Deleted Verb = "deleted"
	// Replaced: the object was deleted, and another one was created under its name.
	Replaced Verb = "replaced"
	// Existing: the object was there when the watch began. It is no change.
	Existing Verb = "existing"
	// Settled: several changes of an object were merged until it was at rest. The
	// event is from the state before the first of them to the state after the last.
	Settled Verb = "settled"
	// Failing: something is wrong with the object that was well before, or that became worse.
	Failing Verb = "failing"
	// Resolved: what was wrong with the object is over.
	Resolved Verb = "resolved"
)

// Verbs returns the verbs.
func Verbs() []Verb {
	return []Verb{Created, Updated, Deleted, Replaced, Existing, Settled, Failing, Resolved}
}

// Class says what sort of thing changed. An event may be of several.
type Class string

// The classes.
const (
	// Content: the desired state: spec, data, and any field of no other class.
	Content Class = "content"
	// Metadata: labels, annotations, finalizers, owners.
	Metadata Class = "metadata"
	// Status: the observed state.
	Status Class = "status"
	// Troubled: something is wrong with the object, or is well again. Events of the verbs Failing
	// and Resolved are of this class, and no others.
	Troubled Class = "trouble"
	// Heartbeat: a sign of life, such as a Lease that was renewed or a condition with a
	// later time. Nothing else changed.
	Heartbeat Class = "heartbeats"
	// Version: the resourceVersion changed, and nothing else that can be seen.
	Version Class = "versions"
)

// Classes returns the classes.
func Classes() []Class { return []Class{Content, Metadata, Status, Troubled, Heartbeat, Version} }

// Kind is the kind of the object and the resource it is served as.
type Kind struct {
	// Group is empty for the core group.
	Group, Version, Kind, Resource string
	// Namespaced says whether objects of the kind are in namespaces.
	Namespaced bool
}

// APIVersion returns "v1" or "apps/v1".
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// String returns "pods" or "deployments.apps", the name on a command line.
func (k Kind) String() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

// Op says what happened to a field.
type Op string

// The operations.
const (
	Add     Op = "add"
	Remove  Op = "remove"
	Replace Op = "replace"
)

// Field is one field that changed.
type Field struct {
	// Path is for people and for comparing: spec.containers[name=web].image. An element
	// of a list whose elements have keys is named by them, of another list by its
	// position.
	Path string `json:"path"`
	Op   Op     `json:"op"`
	// From and To are values as JSON has them (string, bool, int64, float64, nil, maps and
	// slices of them). Add has no From, and Remove no To. A hidden value is a string that
	// says so.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
	// Class is the sort of the field.
	Class Class `json:"class"`
	// Hidden says that From and To stand for hidden values.
	Hidden bool `json:"hidden,omitempty"`
}

// Author is the manager that made a change, as managedFields have it.
type Author struct {
	Manager     string    `json:"manager"`
	Operation   string    `json:"operation"` // Apply or Update
	Subresource string    `json:"subresource,omitempty"`
	Time        time.Time `json:"time,omitzero"` // of the server, in whole seconds
}

// Trouble is one thing that is wrong with an object, or was.
type Trouble struct {
	// About is the part of the object: "container web", "condition Ready". Empty for the object as
	// a whole.
	About string `json:"about,omitempty"`
	// Reason is the one of the object's state: CrashLoopBackOff, Unschedulable. Of a trouble that is
	// over it is the last one.
	Reason string `json:"reason,omitempty"`
	// Message is that of the state, up to 1 KiB of it.
	Message string `json:"message,omitempty"`
	// ExitCode is that of a container that ended.
	ExitCode int64 `json:"exitCode,omitempty"`
	// Restarts is how often a container has been restarted: so far, or, of a trouble that is over,
	// while it lasted.
	Restarts int64 `json:"restarts,omitempty"`
	// Since is when the watch saw it first.
	Since time.Time `json:"since,omitzero"`
}

// Cause is the run of a controller that made a change, and what began the chain of runs that led there, as the record of
// the cluster's manager has them.
type Cause struct {
	Controller string `json:"controller"`
	Run        uint64 `json:"run"` // its number in the record
	// Object is the first object of the chain: "Deployment.apps shop/web". It is empty if the run was not caused by a change.
	Object string `json:"object,omitempty"`
	// Verb is what happened to the object: created, updated or deleted.
	Verb string `json:"verb,omitempty"`
	// Change is the change of the object in a few words, if the watch has seen it.
	Change string `json:"change,omitempty"`
}

// Event is one change. It must not be written to after it was made: Old, New and Fields are
// shared.
type Event struct {
	// ID is the same for the same change, however often and by whichever process it is
	// sent: a receiver drops duplicates by it.
	ID   string
	Time time.Time // when the change was seen here
	Verb Verb

	Kind    Kind
	Key     object.Key
	UID     types.UID
	Version string // the resourceVersion that the change led to; of the last state for Deleted

	// Classes are the classes of Fields, each once, in the order of the constants. A
	// creation, a deletion and a replacement are of class Content.
	Classes []Class
	// Fields are what changed, in the order of their paths. Empty for a creation and a
	// deletion, and where the old state is not known.
	Fields []Field
	// Authors are the managers whose write this can be, newest first; most often one.
	// Empty for a deletion, of which the server keeps no author.
	Authors []Author

	// Cause is why a controller made the change; nil if that is not known, or was not known in time. An event that is made
	// once more after a restart has the same ID, and may have no Cause.
	Cause *Cause

	// Trouble is what began or became worse, of an event of the verb Failing, and what is over, of
	// one of the verb Resolved. The most important comes first.
	Trouble []Trouble

	// Old and New are the states as JSON trees, without managedFields and with hidden
	// values replaced. Old is nil for a creation and where it is not known, New for a
	// deletion.
	Old, New map[string]any

	// Missed marks a change that happened while the watch did not run: it was found by
	// comparing with the cursor, and may stand for several.
	Missed bool
	// Stale marks a deletion that was noticed by absence: Old may not be the last state.
	Stale bool

	// Merged is how many changes this event stands for, if more than one, and Since when
	// the first of them was seen.
	Merged int
	Since  time.Time
	// Summary is a sentence about a settled object, or about its trouble. It may be empty.
	Summary string
}

// Object returns New, or Old for a deletion. It may be nil.
func (e *Event) Object() map[string]any {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// Is reports whether the event is of a class.
func (e *Event) Is(c Class) bool {
	return slices.Contains(e.Classes, c)
}
