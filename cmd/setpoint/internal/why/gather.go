// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

func uidOf(state map[string]any) types.UID {
	return types.UID((jsontree.Tree{Value: state}).Text("metadata", "uid"))
}

// mostAsked is how many objects below are looked up in the record.
const mostAsked = 4

// gather collects the facts about an object.
func gather(ctx context.Context, c *client.Client, f found, record *record) (explain.Facts, error) {
	state, err := f.state(ctx, c)
	if err != nil {
		return explain.Facts{}, err
	}
	facts := explain.Facts{
		Now: time.Now(), State: state, NotRecorded: record.notRecorded,
		Object: runs.ObjectOf(object.Ref{Group: f.resource.Group, Kind: f.resource.Kind, Key: f.key, UID: uidOf(state)}),
	}
	if state != nil {
		facts.Trouble = trouble.Now(kindOf(f.resource), state)
		facts.Below, facts.Unread = below(ctx, c, f, state)
		if facts.Events, err = eventsAbout(ctx, c, f, uidOf(state)); err != nil {
			facts.Unread = append(facts.Unread, "Events: "+err.Error())
		}
	}
	page, err := record.about(ctx, facts.Object)
	if err != nil {
		facts.NotRecorded = err.Error()
		return facts, nil //nolint:nilerr // the answer says what is not known
	}
	facts.Recorded = record.notRecorded == ""
	facts.Present, facts.Runs, facts.Since = page.Present, page.Runs, page.Stats.Since
	asked := 0
	for _, p := range facts.Below {
		if p.Object.Kind == "Pod" || asked == mostAsked {
			continue
		}
		asked++
		if page, err = record.about(ctx, p.Object); err == nil {
			facts.Present, facts.Runs = append(facts.Present, page.Present...), append(facts.Runs, page.Runs...)
		}
	}
	facts.Present = once(facts.Present, func(r *runs.Run) uint64 { return r.Number })
	facts.Runs = once(facts.Runs, func(r *explain.Traced) uint64 { return r.Number })
	slices.SortStableFunc(facts.Runs, func(a, b explain.Traced) int { return b.Last.Compare(a.Last) })
	return facts, nil
}

// once leaves out what has the number of an earlier one.
func once[T any](all []T, number func(*T) uint64) []T {
	known := map[uint64]bool{}
	return slices.DeleteFunc(all, func(one T) bool {
		n := number(&one)
		was := known[n]
		known[n] = true
		return was
	})
}

// mostEvents is how many Events are shown.
const mostEvents = 8

// eventsAbout returns the newest Events about an object.
func eventsAbout(ctx context.Context, c *client.Client, f found, uid types.UID) ([]explain.Event, error) {
	items, _, err := list(ctx, c, query{resource: events, fields: "involvedObject.uid=" + string(uid)}, f.key.Namespace, mostBelow)
	if err != nil {
		return nil, err
	}
	var all []explain.Event
	for _, item := range items {
		o := jsontree.Tree{Value: item}
		all = append(all, explain.Event{
			Last: lastOf(o), Type: o.Text("type"), Reason: o.Text("reason"), Note: o.Text("message"),
			Count: int(max(o.Number(0, "count"), o.Number(1, "series", "count"))), Source: o.Text("source", "component"),
		})
	}
	slices.SortStableFunc(all, func(a, b explain.Event) int { return b.Last.Compare(a.Last) })
	return all[:min(len(all), mostEvents)], nil
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
