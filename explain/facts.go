// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/setpoint-io/setpoint/internal/managedfields"
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
	// of Pods if they are not ready, and the Nodes that do not fit the Pod of Placement.
	Below  []Part
	Events []Event
	// Placement is about the Pod that no Node fits: the object, or the first such Pod below it. Without one it is nil.
	Placement *Placement
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
	// Versions are former versions of the object, the oldest first, if [Facts.Contested] asks for them.
	Versions []Version
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
	// Refuses are the rules of the scheduler that a Node fails for the Pod of Facts.Placement, the first the one that the scheduler counts.
	Refuses []string
	// MayFit says of a Node that fails no rule which can be checked what is known of it; empty if it fails one, or was not checked.
	MayFit string
}

// Placement is a Pod that no Node fits, by the message of the scheduler, and what the present state of the Nodes says about it. The Nodes
// themselves are among Facts.Below.
type Placement struct {
	Pod       runs.Object
	Scheduler string
	Said      time.Time // when the scheduler has said so first
	// More is how many Nodes are not among Facts.Below, and MoreRules what is known of them, counted.
	More      int
	MoreRules []string
	// Unsure are sentences about what the state of the Nodes does not say, or says in another way than the scheduler.
	Unsure []string
}

// Version is a former version of the object, with the field managers that it had.
type Version struct {
	Version  string
	Managers []managedfields.Entry
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
