// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// ReportingController is the reportingController of the Events that are written.
const ReportingController = "setpoint.io/watch"

// Limits of the server for an Event.
// Source: k8s.io/kubernetes/pkg/apis/core/validation/events.go.
const (
	maxNote = 1024
	maxName = 253
)

// kubernetesEvents writes an Event for each event. The name of one comes from the other's
// ID, so that what is sent twice is there once.
type kubernetesEvents struct {
	events    client.Typed[*eventsv1.Event]
	instance  string
	namespace string // of Events about what has none
}

func newKubernetesEvents(o KubernetesEvents, d Deps) (Sink, error) {
	if d.Client == nil {
		return nil, errors.New("needs a cluster to write to, and there is no client")
	}
	return &kubernetesEvents{
		events: client.For[*eventsv1.Event](d.Client).With(client.MetadataAnswer()), instance: cmp.Or(o.Instance, "setpoint-watch"),
		namespace: cmp.Or(o.ClusterNamespace, metav1.NamespaceDefault),
	}, nil
}

// errEventOfEvent refuses what would go round for ever: each Event written is a change
// that is told of.
var errEventOfEvent = errors.New("it is about an Event, and an Event about that would be the next change")

// Send creates Events.
func (k *kubernetesEvents) Send(ctx context.Context, events []*event.Event) Result {
	var r Result
	for _, e := range events {
		if isEvent(e.Kind) {
			r.refuse(errEventOfEvent)
			continue
		}
		_, err := k.events.Create(ctx, k.of(e))
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			r.Done++
		case neverTaken(err):
			r.refuse(fmt.Errorf("the server refused the Event: %w", err))
		default:
			if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
				r.Wait = min(time.Duration(seconds)*time.Second, longestRetryAfter)
			}
			r.Err = fmt.Errorf("writing an Event: %w", err)
			return r
		}
	}
	return r
}

func isEvent(k event.Kind) bool {
	return k.Resource == "events" && (k.Group == corev1.GroupName || k.Group == eventsv1.GroupName)
}

// neverTaken reports whether an Event will be refused the next time as well: it is wrong,
// or its namespace is gone or on its way. A right that is missing can be given.
func neverTaken(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsNotFound(err) || client.NamespaceGone(err)
}

// reasons are the reasons of Events, and their actions.
var reasons = map[event.Verb]string{
	event.Created: "Created", event.Updated: "Updated", event.Deleted: "Deleted",
	event.Replaced: "Replaced", event.Existing: "Existing", event.Settled: "Settled",
}

// of returns the Event for an event.
func (k *kubernetesEvents) of(e *event.Event) *eventsv1.Event {
	namespace := cmp.Or(e.Key.Namespace, k.namespace)
	reason := cmp.Or(reasons[e.Verb], "Changed")
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: eventName(e)},
		EventTime:  metav1.NewMicroTime(e.Time),
		Type:       corev1.EventTypeNormal,
		Reason:     reason,
		Action:     reason,
		Note:       cut(strings.ToValidUTF8(format.Sentence(e), "?"), maxNote),
		Regarding: corev1.ObjectReference{
			APIVersion: e.Kind.APIVersion(), Kind: e.Kind.Kind, Namespace: e.Key.Namespace, Name: e.Key.Name,
			UID: e.UID, ResourceVersion: e.Version,
		},
		ReportingController: ReportingController,
		ReportingInstance:   k.instance,
	}
}

// eventName returns a name that is the same for the same event, beginning with the name of
// the object as usual. Names of objects can have characters that those of Events cannot.
func eventName(e *event.Event) string {
	sum := sha256.Sum256([]byte(e.ID + "\x00" + e.Kind.String() + "\x00" + e.Key.String()))
	suffix := "." + hex.EncodeToString(sum[:10])
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return '-'
	}, e.Key.Name)
	name = strings.Trim(name[:min(len(name), maxName-len(suffix))], "-")
	return cmp.Or(name, "object") + suffix
}

// Close does nothing: the client belongs to somebody else.
func (k *kubernetesEvents) Close() error { return nil }
