// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// How many events are written. For an action on a thousand objects, ten events are written in
// full, and one event counts the rest. An object gets at most a burst of 25 events, and then
// one in five minutes.
// Source: k8s.io/client-go/tools/record, events_cache.go.
const (
	similarMost   = 10
	similarWindow = 10 * time.Minute
	objectBurst   = 25
	objectRefill  = 5 * time.Minute
	seriesEvery   = time.Second // a count is written at most this often
)

// How much a recorder holds: events that wait to be written, and objects whose
// events it counts.
const (
	recorderBacklog = 1000
	recorderObjects = 4096
)

// noteMost is the longest note the API takes, in bytes.
// Source: k8s.io/kubernetes/pkg/apis/core/validation, NoteLengthLimit.
const noteMost = 1024

// Recorder writes Events about the actions of a controller, for users. Recording never blocks
// and never fails: a goroutine of its own writes the events. It counts similar events in one,
// and drops events when too many wait; see Dropped. A Recorder is safe for concurrent use.
type Recorder struct {
	client     *client.Client
	events     client.Typed[*eventsv1.Event]
	controller string
	instance   string
	log        *slog.Logger
	queue      chan *event
	dropped    atomic.Uint64
	nameless   sync.Once // logs an object whose kind is not known
	state      recorderState
}

type event struct {
	about  corev1.ObjectReference
	kind   string
	reason string
	action string
	note   string
	at     time.Time
}

// namespace returns the namespace of the Event: that of the object that it is about, or default
// for an object without namespace.
func (e *event) namespace() string {
	if e.about.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return e.about.Namespace
}

// NewRecorder returns a recorder of events that name controller as their source. instance is
// the name of the process. A nil log is slog.Default.
func NewRecorder(c *client.Client, controller, instance string, log *slog.Logger) *Recorder {
	return &Recorder{
		client: c, events: client.For[*eventsv1.Event](c).With(client.MetadataAnswer()), controller: controller, instance: instance,
		log: cmp.Or(log, slog.Default()).With("recorder", controller), queue: make(chan *event, recorderBacklog),
	}
}

// Rights returns the rights that a Recorder needs.
func Rights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}
}

// Normal records an event of type Normal. reason is one word in CamelCase, which users may
// depend on; action is what the controller did or tried.
//
// The kind of about is that of its Go type, as [client.Client.KindOf] returns it. An object
// that is only metadata needs its TypeMeta. An event about an object of an unknown kind is
// dropped, and the first one is logged.
func (r *Recorder) Normal(about object.Object, reason, action, format string, args ...any) {
	r.record(about, corev1.EventTypeNormal, reason, action, fmt.Sprintf(format, args...))
}

// Warning records an event of type Warning. All else is as for Normal.
func (r *Recorder) Warning(about object.Object, reason, action, format string, args ...any) {
	r.record(about, corev1.EventTypeWarning, reason, action, fmt.Sprintf(format, args...))
}

func (r *Recorder) record(about object.Object, typ, reason, action, note string) {
	kind, err := r.client.KindOf(about)
	if err != nil {
		r.dropped.Add(1)
		r.nameless.Do(func() {
			r.log.Error("events about objects of this type are dropped", "reason", reason, "error", err)
		})
		return
	}
	e := &event{
		about: corev1.ObjectReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: about.GetNamespace(), Name: about.GetName(),
			UID: about.GetUID(), ResourceVersion: about.GetResourceVersion(),
		},
		kind: typ, reason: reason, action: action, note: cutNote(note), at: time.Now(),
	}
	select {
	case r.queue <- e:
	default:
		r.dropped.Add(1)
	}
}

// Dropped returns how many events were not written, because there were too many or because the
// server refused them.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

// Run writes events until ctx ends, and then the events that wait, for the time flush. Events
// that are left count as dropped.
func (r *Recorder) Run(ctx context.Context, flush time.Duration) {
	// A write that is under way when ctx ends is one of those that are flushed.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(flush, cancel)
		context.AfterFunc(work, func() { timer.Stop() })
	})()
	for ctx.Err() == nil {
		select {
		case e := <-r.queue:
			r.write(work, *e)
		case <-ctx.Done():
		}
	}
	for work.Err() == nil {
		select {
		case e := <-r.queue:
			r.write(work, *e)
		default:
			return
		}
	}
	r.dropped.Add(uint64(len(r.queue)))
}

func (r *Recorder) write(ctx context.Context, e event) {
	d := r.state.decide(e)
	var err error
	switch {
	case d.drop:
		r.dropped.Add(1)
		return
	case d.series == nil:
		err = r.create(ctx, e, d)
	default:
		err = r.count(ctx, e, d)
		if apierrors.IsNotFound(err) { // events expire
			err = r.create(ctx, e, d)
		}
	}
	if err == nil {
		return
	}
	r.dropped.Add(1)
	// Events about objects of a namespace that is being deleted are not needed.
	if !client.NamespaceGone(err) {
		r.log.Debug("an event was not written", "about", e.about.Name, "reason", e.reason, "error", err)
	}
}

// cutNote cuts a note to the longest one that the API takes, between two characters.
func cutNote(note string) string {
	if len(note) <= noteMost {
		return note
	}
	return strings.ToValidUTF8(note[:noteMost-3], "") + "..."
}

func (r *Recorder) create(ctx context.Context, e event, d decision) error {
	_, err := r.events.Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.namespace(), Name: d.name},
		EventTime:           metav1.NewMicroTime(e.at),
		ReportingController: r.controller,
		ReportingInstance:   r.instance,
		Action:              e.action,
		Reason:              e.reason,
		Regarding:           e.about,
		Note:                d.note,
		Type:                e.kind,
		Series:              d.series,
	})
	return err
}

// count writes the count alone. The server refuses another note (k8s.io/kubernetes/pkg/apis/core/validation,
// ValidateEventUpdate), so an Event of similar ones keeps that of its first.
func (r *Recorder) count(ctx context.Context, e event, d decision) error {
	patch, err := client.MergePatch(map[string]any{"series": d.series})
	if err != nil {
		return err
	}
	_, err = r.events.Patch(ctx, object.Key{Namespace: e.namespace(), Name: d.name}, patch)
	return err
}
