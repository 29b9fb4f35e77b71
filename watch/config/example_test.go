// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/event"
)

func Example() {
	c, err := config.Parse([]byte(`apiVersion: setpoint.io/watch/v1
watch:
  kinds: [pods, deployments.apps]
sinks:
  - name: everything
    file: {path: /var/log/setpoint-watch/changes.json}
  - name: team-a
    webhook: {urlFrom: {env: TEAM_A_URL}}
routes:
  - match: {namespaces: ['team-a-*'], verbs: [deleted]}
    sinks: [team-a]
    continue: true
  - sinks: [everything]
`), "config.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, verb := range []event.Verb{event.Updated, event.Deleted} {
		sinks, err := c.Router().Route(&event.Event{
			Verb: verb, Kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true},
			Key: object.Key{Namespace: "team-a-prod", Name: "web"},
		})
		fmt.Println(verb, sinks, err)
	}
	for _, line := range config.Check(c, nil, nil).Lines() {
		fmt.Println(line)
	}

	// Output:
	// updated [everything] <nil>
	// deleted [team-a everything] <nil>
	// watches pods, deployments.apps, in all namespaces
	// tells of creations, deletions, trouble, and changes of content, metadata
	// has no cursor: what happens while it is not running is not told
	// sink everything (file: /var/log/setpoint-watch/changes.json) gets everything (routes[1])
	// sink team-a (webhook: the URL in the environment variable TEAM_A_URL) gets events in team-a-*, deleted (routes[0])
}

func ExampleParse_mistakes() {
	_, err := config.Parse([]byte(`apiVersion: setpoint.io/watch/v1
watch:
  kinds: [pod]
  where: event.verbs == "deleted"
sinks:
  - name: log
    terminal: {colour: true}
`), "config.yaml")
	fmt.Println(err)
	// Output:
	// config.yaml:3:11: watch.kinds[0]: "pod" is no kind without a group; did you mean "pods"? A kind of your own is named with its group, as in widgets.example.com
	// config.yaml:4:15: watch.where: the condition is wrong: undefined field 'verbs'; did you mean "verb"?
	//     event.verbs == "deleted"
	//          ^
	// config.yaml:7:16: sinks[0].terminal: there is no key "colour" here; did you mean "color"? There are form, color, objects, source
}
