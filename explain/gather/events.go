// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
)

// mostEvents is how many Events are shown.
const mostEvents = 8

// eventsAbout returns the newest Events about an object, and which Events cannot be read. Without a
// UID they are those about objects of its kind and name. A server has no index of Events by object: it reads all Events of a
// namespace for one list.
func (g Gatherer) eventsAbout(ctx context.Context, kind string, key object.Key, uid types.UID) (all []explain.Event, unread []string) {
	fields := "involvedObject.uid=" + string(uid)
	if uid == "" {
		fields = "involvedObject.kind=" + kind + ",involvedObject.name=" + key.Name
	}
	in := namespacesOfEvents(kind, key)
	found, errs := make([][]map[string]any, len(in)), make([]error, len(in))
	var running sync.WaitGroup
	for i, namespace := range in {
		running.Go(func() {
			found[i], _, errs[i] = list(ctx, g.Client, query{resource: events, fields: fields}, namespace)
		})
	}
	running.Wait()
	for i, items := range found {
		if errs[i] != nil {
			unread = append(unread, "Events: "+errs[i].Error())
		}
		for _, item := range items {
			all = append(all, eventOf(item))
		}
	}
	slices.SortStableFunc(all, func(a, b explain.Event) int { return b.Last.Compare(a.Last) })
	return all[:min(len(all), mostEvents)], unread
}

// namespacesOfEvents returns the namespaces of the Events about an object. A server refuses an Event about an object without
// a namespace in any other namespace than these two. An Event that names a namespace for a Namespace names that one.
// Source: k8s.io/kubernetes/pkg/apis/core/validation, legacyValidateEvent.
func namespacesOfEvents(kind string, key object.Key) []string {
	switch {
	case key.Namespace != "":
		return []string{key.Namespace}
	case kind == namespaces.Kind && key.Name != metav1.NamespaceDefault && key.Name != metav1.NamespaceSystem:
		return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, key.Name}
	}
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem}
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
