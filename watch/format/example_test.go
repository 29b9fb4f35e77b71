// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"fmt"
	"os"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

func scaled() *event.Event {
	return &event.Event{
		ID: "3f0c8f6f", Time: time.Date(2026, 3, 4, 15, 4, 5, 0, time.UTC), Verb: event.Updated,
		Kind:    event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true},
		Key:     object.Key{Namespace: "team-a", Name: "web"},
		Fields:  []event.Field{{Path: "spec.replicas", Op: event.Replace, From: int64(1), To: int64(3), Class: event.Content}},
		Authors: []event.Author{{Manager: "kubectl-edit", Operation: "Update", Subresource: "scale"}},
	}
}

func Example() {
	for _, form := range []format.Form{format.Text, format.Diff} {
		w := format.New(os.Stdout, format.Options{Form: form})
		if err := w.Write(scaled()); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 15:04:05.000  updated   deployment.apps  team-a/web  replicas 1 → 3 (by kubectl edit/scale)
	// 15:04:05.000 updated deployment.apps team-a/web (by kubectl edit/scale)
	//   ~ spec.replicas: 1 → 3
}

func ExampleSentence() {
	fmt.Println(format.Sentence(scaled()))
	// Output:
	// Deployment team-a/web updated: replicas 1 → 3 (by kubectl edit/scale)
}

func ExampleParseForm() {
	_, err := format.ParseForm("jsno")
	fmt.Println(err)
	// Output:
	// there is no form "jsno"; did you mean "json"? There are text, diff, json, yaml, cloudevents
}
