// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nearest"
	"github.com/setpoint-io/setpoint/watch/event"
)

// classes are the sorts of changes by the names that --show takes, which are those of the
// file. Events have them in the singular, which is taken as well.
var classes = []struct {
	name  string
	class event.Class
	about string
}{
	{"status", event.Status, "what somebody reports, such as a Pod that becomes ready"},
	{"heartbeats", event.Heartbeat, "somebody says that he is alive: leases, times of conditions"},
	{"versions", event.Version, "nothing that can be seen but the resourceVersion"},
	{"content", event.Content, "spec, data and the like; always shown"},
	{"metadata", event.Metadata, "labels, annotations, owners; always shown"},
}

// classOf returns the class of a name.
func classOf(name string) (event.Class, error) {
	var known []string
	for _, c := range classes {
		if name == c.name || name == string(c.class) {
			return c.class, nil
		}
		known = append(known, c.name)
	}
	return "", fmt.Errorf("there is no such sort of change%s There are %s",
		cmp.Or(nearest.Question("%s", name[:min(len(name), 100)], known), "."), strings.Join(known, ", "))
}
