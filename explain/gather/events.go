// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
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
	found, errs := make([][]corev1.Event, len(in)), make([]error, len(in))
	var running sync.WaitGroup
	for i, namespace := range in {
		running.Go(func() {
			found[i], errs[i] = g.listEvents(ctx, namespace, fields, mostBelow)
		})
	}
	running.Wait()
	for i, items := range found {
		if errs[i] != nil {
			unread = append(unread, "Events: "+errs[i].Error())
		}
		for i := range items {
			all = append(all, eventOf(&items[i]))
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

// listEvents returns the first Events of a namespace that have some fields.
func (g Gatherer) listEvents(ctx context.Context, namespace, fieldSelector string, most int) (items []corev1.Event, err error) {
	request := g.Client.Request(http.MethodGet).Resource(events).Namespace(namespace).Param("fieldSelector", fieldSelector).Param("limit", fmt.Sprint(most))
	_, err = page(ctx, request.Accept(protobufFirst), events, func(e wire.Encoding, raw []byte) error {
		var item corev1.Event
		err := e.Decode(raw, &item)
		items = append(items, item)
		return err
	})
	return items, err
}

// eventOf reads an Event. Two generations of the API have its author and its count in other fields.
func eventOf(e *corev1.Event) explain.Event {
	count := max(e.Count, 1)
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	return explain.Event{
		Last: lastOf(e), Type: e.Type, Reason: e.Reason, Note: e.Message, Count: int(count), Source: cmp.Or(e.Source.Component, e.ReportingController),
	}
}

// lastOf returns when an Event happened the last time. Two generations of the API have it in other fields.
func lastOf(e *corev1.Event) time.Time {
	last := e.CreationTimestamp.Time
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	for _, at := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if at.After(last) {
			last = at
		}
	}
	return last
}
