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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// reportingController is the reportingController of the Events that this sink writes.
const reportingController = "setpoint.io/watch"

// Limits of the server for an Event.
// Source: k8s.io/kubernetes/pkg/apis/core/validation/events.go.
const (
	maxNote     = 1024
	maxName     = 253
	maxInstance = 128
)

// KubernetesEvents describes a sink that writes Events of events.k8s.io, which kubectl
// shows under what they regard.
type KubernetesEvents struct {
	// Instance is the name of this process, which is in each Event. Default: setpoint-watch.
	Instance string `yaml:"instance,omitempty"`
	// ClusterNamespace is where Events about objects without a namespace are written.
	// default or kube-system; servers take no other. Default: default.
	ClusterNamespace string `yaml:"clusterNamespace,omitempty"`
}

func (k *KubernetesEvents) check(report reporter) {
	if len(k.Instance) > maxInstance {
		report.wrong("instance", "is of %d bytes, and the server takes %d", len(k.Instance), maxInstance)
	}
	switch k.ClusterNamespace {
	case "", metav1.NamespaceDefault, metav1.NamespaceSystem:
	default:
		report.wrong("clusterNamespace", "%q is neither %s nor %s, and servers take Events about objects without a namespace in no other",
			k.ClusterNamespace, metav1.NamespaceDefault, metav1.NamespaceSystem)
	}
}

func (k *KubernetesEvents) reads() []Read { return nil }

func (k *KubernetesEvents) batch() int { return 1 }

// NamespaceOf returns the namespace of the Event about an object in a namespace, which may be
// empty.
func (k *KubernetesEvents) NamespaceOf(namespace string) string {
	return cmp.Or(namespace, k.ClusterNamespace, metav1.NamespaceDefault)
}

// EventRights returns what a sink of Kubernetes Events must be allowed to do in the namespaces of
// its Events.
func EventRights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create"}}
}

func (k *KubernetesEvents) sink(d Deps) (Sink, error) {
	if d.Client == nil {
		return nil, errors.New("needs a cluster to write to, and there is no client")
	}
	events := client.For[*eventsv1.Event](d.Client).With(client.MetadataAnswer())
	return &kubernetesEvents{KubernetesEvents: k, events: events}, nil
}

// kubernetesEvents writes an Event for each event. Its name is made of the ID of the event, so
// that what is sent twice is there once.
type kubernetesEvents struct {
	*KubernetesEvents

	events client.Typed[*eventsv1.Event]
}

// errEventOfEvent refuses an endless loop: each Event that is written is itself a change.
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

// neverTaken reports whether the server will refuse an Event the next time as well: it is
// invalid, or its namespace is gone or terminating. A missing right can still be granted, and any other 404 is that of
// a proxy, or of a server that does not have the kind yet.
func neverTaken(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) || client.NamespaceGone(err)
}

// reasons are the reasons of Events, and their actions.
var reasons = map[event.Verb]string{
	event.Created: "Created", event.Updated: "Updated", event.Deleted: "Deleted",
	event.Replaced: "Replaced", event.Existing: "Existing", event.Settled: "Settled",
	event.Failing: "Failing", event.Resolved: "Resolved",
}

// of returns the Event for an event.
func (k *kubernetesEvents) of(e *event.Event) *eventsv1.Event {
	reason, level := cmp.Or(reasons[e.Verb], "Changed"), corev1.EventTypeNormal
	if e.Verb == event.Failing {
		level = corev1.EventTypeWarning
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.NamespaceOf(e.Key.Namespace), Name: eventName(e)},
		EventTime:  metav1.NewMicroTime(e.Time),
		Type:       level,
		Reason:     reason,
		Action:     reason,
		Note:       cut(strings.ToValidUTF8(format.Sentence(e), "?"), maxNote),
		Regarding: corev1.ObjectReference{
			APIVersion: e.Kind.APIVersion(), Kind: e.Kind.Kind, Namespace: e.Key.Namespace, Name: e.Key.Name,
			UID: e.UID, ResourceVersion: e.Version,
		},
		ReportingController: reportingController,
		ReportingInstance:   cmp.Or(k.Instance, "setpoint-watch"),
	}
}

// eventName returns the same name for the same event. As usual, it begins with the name of the
// object, without the characters that names of Events cannot have.
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

// Close does nothing: the client is the program's.
func (k *kubernetesEvents) Close() error { return nil }
