// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// Facts are what is known of an object and of those around it.
type Facts struct {
	Now    time.Time
	Object runs.Object
	// State is the object as the server has it; nil if it does not exist.
	State map[string]any
	// Trouble are sentences about what is wrong with the object, by its state, the most important first.
	Trouble []string
	// Above are the controllers that own the object: its own, that one's, and so on.
	Above []Part
	// Below are the objects that the object owns, and those that they own, each after its owner. After them come the Nodes
	// of Pods if they are not ready.
	Below  []Part
	Events []Event
	// Unread are sentences about what could not be read.
	Unread []string

	// Recorded is set if the record of a manager was read. Without it NotRecorded says why.
	Recorded    bool
	NotRecorded string
	// Present are the runs that state reasons, and Runs the newest runs about the object, with what led to them.
	Present []runs.Run
	Runs    []Traced
	// Loops are what loops do at present about the object and those below it.
	Loops []runs.KeyState
	// HiddenRuns is how many of these runs are about objects that the user may not get, and HiddenNames how many names of
	// objects are left out for that reason.
	HiddenRuns, HiddenNames int
	// Since is the time from which on the record has all runs that wrote, failed or stated reasons; zero: all it ever had.
	Since time.Time
}

// Part is an object below the one that is explained.
type Part struct {
	Object  runs.Object
	Depth   int // 1 is owned by the object itself
	State   map[string]any
	Trouble []string
}

// Traced is a run with the chain of its causes.
type Traced struct {
	runs.Run
	Origins []runs.Origin `json:"origins,omitempty"`
}

// Event is an Event of Kubernetes about the object.
type Event struct {
	Last   time.Time `json:"last"`
	Type   string    `json:"type"` // Normal or Warning
	Reason string    `json:"reason"`
	Note   string    `json:"note"`
	Count  int       `json:"count"`
	Source string    `json:"source,omitempty"`
}
