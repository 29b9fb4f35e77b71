// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

func Example() {
	e := &event.Event{
		ID: "3f0c8f6f", Time: time.Date(2026, 3, 4, 15, 4, 5, 0, time.UTC), Verb: event.Updated,
		Kind:    event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true},
		Key:     object.Key{Namespace: "team-a", Name: "web"},
		Classes: []event.Class{event.Content},
		Fields: []event.Field{
			{Path: "spec.replicas", Op: event.Replace, From: int64(1), To: int64(3), Class: event.Content},
		},
	}
	line, err := event.Encode(e, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := event.Decode(line)
	if err != nil {
		fmt.Println(err)
		return
	}
	f := again.Fields[0]
	fmt.Println(again.Verb, again.Kind, again.Key, f.Path, f.From, f.To)
	// Output:
	// updated deployments.apps team-a/web spec.replicas 1 3
}
