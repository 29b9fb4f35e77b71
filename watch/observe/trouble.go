// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// mostSentences is how many troubles the summary of an event names.
const mostSentences = 3

// Trouble returns the event that says what began, if the verb is Failing, or what is over, if it is
// Resolved. It happened with a change, or some time after it: change is the event of that one, and
// its state is the state of both.
//
// The event has an ID of its own, which is the same whenever the same troubles begin or end with the
// same version of the object.
func (o *Observer) Trouble(change *event.Event, verb event.Verb, notes []trouble.Note) *event.Event {
	e := &event.Event{
		Time: o.clock(), Verb: verb, Kind: change.Kind, Key: change.Key, UID: change.UID, Version: change.Version,
		Classes: []event.Class{event.Troubled}, Authors: change.Authors, Missed: change.Missed,
		Old: change.Old, New: change.New,
	}
	if e.Old == nil { // a condition may compare the two
		e.Old = e.New
	}
	about := []string{o.identity(e)}
	var sentences []string
	for _, n := range notes {
		e.Trouble = append(e.Trouble, n.Trouble)
		about = append(about, n.About, n.Reason)
		sentences = append(sentences, n.Text)
	}
	e.ID = digestOf(about...)
	if more := len(sentences) - mostSentences; more > 0 {
		sentences = append(sentences[:mostSentences], fmt.Sprintf("%d more", more))
	}
	e.Summary = strings.Join(sentences, "; ")
	return e
}

// Shown returns an object without the values that no event shows.
func (o *Observer) Shown(object map[string]any) map[string]any {
	return o.hidden(withoutManagedFields(object))
}
