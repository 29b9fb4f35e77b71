// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
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

// How many events are written. A controller that does the same thing to a
// thousand objects says it ten times in full and counts the rest in one event;
// and no object gets more than a burst of 25 and one in five minutes after that.
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

// Recorder writes Events: what a controller did, for people. Recording never
// blocks and never fails: events are written by a goroutine of their own, similar
// ones are counted instead of repeated, and what there is no room for is dropped
// and counted. It is safe for concurrent use.
type Recorder struct {
	client     client.Typed[*eventsv1.Event]
	controller string
	instance   string
	log        *slog.Logger
	queue      chan *event
	dropped    atomic.Uint64
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

// namespace is where the Event object lives: that of what it is about, or default
// for what is cluster-scoped.
func (e *event) namespace() string {
	if e.about.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return e.about.Namespace
}

// NewRecorder returns a recorder of events that name controller as their source.
// instance tells apart the processes that run it.
func NewRecorder(c *client.Client, controller, instance string, log *slog.Logger) *Recorder {
	return &Recorder{
		client: client.For[*eventsv1.Event](c).With(client.MetadataAnswer()), controller: controller, instance: instance,
		log: log.With("recorder", controller), queue: make(chan *event, recorderBacklog),
	}
}

// EventRights returns what a Recorder must be allowed to do: write an event, and count
// it on.
func EventRights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}
}

// Normal records something that is as it should be. reason is one word in
// CamelCase, an API to users; action is what was tried.
func (r *Recorder) Normal(about object.Object, kind object.Resource, reason, action, format string, args ...any) {
	r.record(about, kind, corev1.EventTypeNormal, reason, action, format, args)
}

// Warning records something that went wrong.
func (r *Recorder) Warning(about object.Object, kind object.Resource, reason, action, format string, args ...any) {
	r.record(about, kind, corev1.EventTypeWarning, reason, action, format, args)
}

func (r *Recorder) record(about object.Object, kind object.Resource, typ, reason, action, format string, args []any) {
	note := cutNote(fmt.Sprintf(format, args...))
	e := &event{
		about: corev1.ObjectReference{
			APIVersion: kind.APIVersion(), Kind: kind.Kind, Namespace: about.GetNamespace(), Name: about.GetName(),
			UID: about.GetUID(), ResourceVersion: about.GetResourceVersion(),
		},
		kind: typ, reason: reason, action: action, note: note, at: time.Now(),
	}
	select {
	case r.queue <- e:
	default:
		r.dropped.Add(1)
	}
}

// Dropped returns how many events were not written: because they came too fast,
// or because the server did not take them.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

// Run writes events until ctx ends, and after that those that wait, for as long
// as flush lasts. What is left then is counted as dropped.
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
	// An event about an object of a namespace that is going is nothing to tell.
	if !client.NamespaceGone(err) {
		r.log.Debug("an event was not written", "about", e.about.Name, "reason", e.reason, "error", err)
	}
}

// cutNote makes a note fit the API, between two characters.
func cutNote(note string) string {
	if len(note) <= noteMost {
		return note
	}
	return strings.ToValidUTF8(note[:noteMost-3], "") + "..."
}

func (r *Recorder) create(ctx context.Context, e event, d decision) error {
	_, err := r.client.Create(ctx, &eventsv1.Event{
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

func (r *Recorder) count(ctx context.Context, e event, d decision) error {
	patch, err := client.MergePatch(map[string]any{"series": d.series, "note": d.note})
	if err != nil {
		return err
	}
	_, err = r.client.Patch(ctx, object.Key{Namespace: e.namespace(), Name: d.name}, patch)
	return err
}
