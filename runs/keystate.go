// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import "time"

// PageFormat is the number of the JSON of /debug/runs. A new field does not change it. It grows when a field changes its meaning, so that a
// reader of another version does not misread the record.
const PageFormat = 1

// States of a key in its loop.
const (
	StateRunning = "running" // a worker reconciles it
	StateReady   = "ready"   // it waits for a worker
	StateDelayed = "delayed" // it waits for a time: the end of its back-off if Failures is above 0, and the time that a run asked for otherwise
	StateHeld    = "held"    // its next run waits until the informers have seen what the last one wrote
	StateIdle    = "idle"    // it runs when something changes
)

// KeyState is what a loop does about one key at present. Package controller makes it; it is here for the programs that
// read records.
type KeyState struct {
	Controller string `json:"controller"`
	Key        string `json:"key"`
	Object     Object `json:"object"`
	State      string `json:"state"`
	// Since is when the state began; nil if it is not known.
	Since *time.Time `json:"since,omitempty"`
	// Until is the time for which a delayed key waits.
	Until *time.Time `json:"until,omitempty"`
	// Ahead is how many of the Ready keys of the queue workers get before a ready key, AheadCounted at most.
	Ahead int `json:"ahead,omitempty"`
	Ready int `json:"ready,omitempty"`
	// Failures is how many runs in a row have failed, or asked for another one that the rate limit delays.
	Failures int `json:"failures,omitempty"`
	// Requested is set if something has changed since the run began, so that the key runs again.
	Requested bool `json:"requested,omitempty"`
	// Unseen is the own write for which a held key waits.
	Unseen *Unseen `json:"unseen,omitempty"`
	// Informers are those of the loop that are not current.
	Informers []InformerLag `json:"informers,omitempty"`
}

// AheadCounted is up to which number the keys ahead of one are counted.
const AheadCounted = 10_000

// Unseen is a write that an informer of the loop has not seen.
type Unseen struct {
	Verb    string `json:"verb"`
	Object  Object `json:"object"`
	Version string `json:"version,omitempty"`
	// Lookup is set if the answer of the server was lost, or names no object, so the controller reads from the server what the write did.
	Lookup bool `json:"lookup,omitempty"`
	// Kind is the plural of the kind whose informer has not seen the write.
	Kind string `json:"kind"`
}

// InformerLag is why an informer is not current.
type InformerLag struct {
	Kind    string `json:"kind"` // its plural
	Trouble string `json:"trouble"`
	// Heard is when the server last sent anything of the kind; nil if never.
	Heard *time.Time `json:"heard,omitempty"`
}
