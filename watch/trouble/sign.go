// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/watch/event"
)

// health is what a state says of one thing that can be wrong with an object.
type health int

const (
	// unclear: the state does not say. An episode goes on as it is.
	unclear health = iota
	good
	bad
)

// Sign is what the state of an object says of one thing that can be wrong with it.
type Sign struct {
	// Name identifies the sign among those of its object: "crash web", "condition Ready".
	Name string
	// About is the part of the object, for people: "container web", "condition Ready"; empty for
	// the object as a whole.
	About string
	// Reason and Message are those of the state. Of a container that ended they are those of its end.
	Reason, Message string
	// Status is that of a condition.
	Status string
	// ExitCode is that of a container that ended.
	ExitCode int64
	// Restarts is how often a container has been restarted so far.
	Restarts int64

	sort   sort
	health health
	// grade is how bad it is. An episode is reported again when it gets worse.
	grade int
	// patience is how long it must be bad before it is reported.
	patience time.Duration
	// young says that the patience is for an object that has not been well yet.
	young bool
	// quiet is how long it must be good before it is over.
	quiet time.Duration
	// minor says that it follows from others: it is not reported while another is reported.
	minor bool
	// node is the Node of a Pod.
	node string
}

// sort is what a sign is about, which decides its words.
type sort int

const (
	ofCondition sort = iota
	ofCrash
	ofImage
	ofConfig
	ofScheduling
	ofObject // a reason of the whole object
)

const (
	// soon is the patience with what is normal for a moment: the scheduler finds no Node before
	// the first one is ready.
	soon = 3 * time.Second
	// slow is the patience with what is normal while something starts.
	slow = 2 * time.Minute
	// calm is how long something must be good before it is over, unless there is a better measure.
	calm = 10 * time.Second
)

// IsBad reports whether the state says that it is bad now.
func (s *Sign) IsBad() bool { return s.health == bad }

// Of returns the signs of an object, which is a JSON tree: of everything that can be wrong with
// objects of its kind, whether it is or not. The order is that of their importance. Without an
// object there are none.
func Of(kind event.Kind, object map[string]any) []Sign {
	if object == nil {
		return nil
	}
	o := jsontree.Tree{Value: object}
	switch kind.Kind + "." + kind.Group {
	case "Pod.":
		return ofPod(o)
	case "PersistentVolumeClaim.":
		return append(ofPhase(o, "Lost"), ofConditions(kind, o)...)
	case "PersistentVolume.":
		return ofPhase(o, "Failed")
	}
	return ofConditions(kind, o)
}

// Now returns a sentence for each thing that is wrong with an object now, the most important first.
// What is normal while something starts is left out.
func Now(kind event.Kind, object map[string]any) []string {
	var all []string
	for _, s := range Of(kind, object) {
		if s.health == bad && !s.minor && s.patience < slow {
			all = append(all, s.text())
		}
	}
	return all
}

// Present returns a sentence for each thing that is wrong with an object now, the most important first. If it has none but
// those that are normal while something starts, or that follow from others, it returns these. Messages are not shortened.
func Present(kind event.Kind, object map[string]any) []string {
	var all, mild []string
	for _, s := range Of(kind, object) {
		switch {
		case s.health != bad:
		case s.minor || s.patience >= slow:
			mild = append(mild, s.sentence(mostMessage))
		default:
			all = append(all, s.sentence(mostMessage))
		}
	}
	if len(all) == 0 {
		return mild
	}
	return all
}

// ofPhase has the sign of a kind that says by its phase that it failed.
func ofPhase(o jsontree.Tree, failed string) []Sign {
	s := Sign{Name: "phase", Reason: failed, Message: o.Text("status", "message"), sort: ofObject, health: good, grade: 1, quiet: calm}
	if o.Text("status", "phase") == failed {
		s.health = bad
	}
	return []Sign{s}
}
