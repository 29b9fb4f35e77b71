// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
)

// mostEvents is how many Events are shown.
const mostEvents = 8

// eventsAbout returns the newest Events about an object. Without a UID they are those about objects of its kind and name.
func (g Gatherer) eventsAbout(ctx context.Context, kind string, key object.Key, uid types.UID) ([]explain.Event, error) {
	fields := "involvedObject.uid=" + string(uid)
	if uid == "" {
		fields = "involvedObject.kind=" + kind + ",involvedObject.name=" + key.Name
	}
	items, _, err := list(ctx, g.Client, query{resource: events, fields: fields}, key.Namespace, mostBelow)
	if err != nil {
		return nil, err
	}
	var all []explain.Event
	for _, item := range items {
		all = append(all, eventOf(item))
	}
	slices.SortStableFunc(all, func(a, b explain.Event) int { return b.Last.Compare(a.Last) })
	return all[:min(len(all), mostEvents)], nil
}

// eventOf reads an Event. Two generations of the API have its author in other fields.
func eventOf(item map[string]any) explain.Event {
	o := jsontree.Tree{Value: item}
	return explain.Event{
		Last: lastOf(o), Type: o.Text("type"), Reason: o.Text("reason"), Note: o.Text("message"),
		Count:  int(max(o.Number(0, "count"), o.Number(1, "series", "count"))),
		Source: cmp.Or(o.Text("source", "component"), o.Text("reportingComponent")),
	}
}

// lastOf returns when an Event happened the last time. Two generations of the API have it in other fields.
func lastOf(o jsontree.Tree) (last time.Time) {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"metadata", "creationTimestamp"}} {
		if at, err := time.Parse(time.RFC3339Nano, o.Text(path...)); err == nil && at.After(last) {
			last = at
		}
	}
	return last
}
