// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
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
	// of Pods if they are not ready.
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
}

// Placement is a Pod that no Node fits, by the message of the scheduler, and what the present state of the Nodes says about it.
type Placement struct {
	Pod       runs.Object
	Scheduler string
	Said      time.Time // when the scheduler has said so first
	// Nodes are the first Nodes by name.
	Nodes []NodeFit
	// More is how many Nodes are not among Nodes, and MoreRules what is known of them, counted.
	More      int
	MoreRules []string
	// Unsure are sentences about what the state of the Nodes does not say, or says in another way than the scheduler.
	Unsure []string
}

// NodeFit is what is known of a Node for a Pod.
type NodeFit struct {
	Node runs.Object
	// Refuses are the rules of the scheduler that the Node fails, the first the one that the scheduler counts.
	Refuses []Refusal
	// MayFit says what is known of a Node that fails no rule which can be checked; empty if it fails one.
	MayFit string
}

// Refusal is a rule of the scheduler that a Node fails.
type Refusal struct {
	Text string
	// By is the kind of the objects that decide it besides the Node and the Pod: Pod, of all namespaces; PersistentVolume;
	// or empty.
	By string
}

// DecidedBy returns the kinds of the objects that decide the rules besides the Nodes and the Pod.
func (p *Placement) DecidedBy() (kinds []string) {
	for i := range p.Nodes {
		for _, r := range p.Nodes[i].Refuses {
			if r.By != "" && !slices.Contains(kinds, r.By) {
				kinds = append(kinds, r.By)
			}
		}
	}
	return kinds
}

// WithoutBy returns a copy without what objects of a kind decide, which a reader may not get.
func (p *Placement) WithoutBy(kind string) *Placement {
	own := *p
	own.Nodes = slices.Clone(p.Nodes)
	left := false
	for i := range own.Nodes {
		n := &own.Nodes[i]
		before := len(n.Refuses)
		n.Refuses = slices.DeleteFunc(slices.Clone(n.Refuses), func(r Refusal) bool { return r.By == kind })
		left = left || len(n.Refuses) < before
		if before > 0 && len(n.Refuses) == 0 {
			n.MayFit = "it fails no rule by itself"
		}
	}
	if left {
		own.Unsure = append(slices.Clone(p.Unsure), "rules that depend on objects of kind "+kind+", which the user may not get")
	}
	return &own
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
