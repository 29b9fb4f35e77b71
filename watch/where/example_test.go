// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where_test

import (
	"fmt"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/where"
)

func Example() {
	c, err := where.Compile(`event.verb == "updated" && new.spec.replicas > old.spec.replicas`)
	if err != nil {
		fmt.Println(err)
		return
	}
	scaled := func(from, to int64) *event.Event {
		return &event.Event{
			Verb: event.Updated, Key: object.Key{Namespace: "team-a", Name: "web"},
			Old: map[string]any{"spec": map[string]any{"replicas": from}},
			New: map[string]any{"spec": map[string]any{"replicas": to}},
		}
	}
	fmt.Println(c.Matches(scaled(1, 3)))
	fmt.Println(c.Matches(scaled(3, 1)))
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleCompile() {
	_, err := where.Compile(`event.verbs == "updated"`)
	fmt.Println(err)
	// Output:
	// the condition is wrong: undefined field 'verbs'
	//     event.verbs == "updated"
	//          ^
	// did you mean "verb"?
}
