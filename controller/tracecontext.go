// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Annotate implements client.Annotator: the objects that a run creates carry its trace context, if the user has switched
// that on.
//
// Updates and patches carry none. With the context of another run, one that changes nothing would change the object, which
// would start the next run.
func (n *notes) Annotate(write client.Write) (name, value string) {
	c := n.writes.loop
	if c.recorder == nil || write.Verb != "create" || !c.recorder.Propagates() || !lasts(write.Resource) {
		return "", ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.number == 0 {
		n.number, n.traceparent = c.recorder.Context()
	}
	return runs.TraceparentAnnotation, n.traceparent
}

// lasts reports whether objects of a kind are decisions that controllers act on: reviews are answered and not stored, and
// Events and Leases report.
func lasts(r object.Resource) bool {
	switch r.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io", "events.k8s.io":
		return false
	}
	return r.Group != "" || r.Plural != "events"
}

// mostContexts bounds the trace contexts that one run reads.
const mostContexts = 8

// contextsOf returns the trace contexts of the objects that a run is about: that of its key, and those whose changes are its
// causes.
func (c *core) contextsOf(key any, causes workqueue.Causes) (all []string) {
	add := func(informer cache.Handle, of object.Key) {
		notes, err := informer.Annotations(of)
		if text := notes[runs.TraceparentAnnotation]; err == nil && text != "" && len(all) < mostContexts && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if of, isObject := key.(object.Key); isObject && c.primary != (cache.Handle{}) {
		add(c.primary, of)
	}
	for cause := range causes.All() {
		if cause.Ref == (object.Ref{}) || cause.Verb == workqueue.Resync {
			continue
		}
		for _, informer := range c.informers {
			if group, kind := informer.GroupKind(); group != cause.Ref.Group || kind != cause.Ref.Kind {
				continue
			}
			if m, shown := informer.Meta(cause.Ref.Key); shown && (cause.Ref.UID == "" || cause.Ref.UID == m.UID) {
				add(informer, cause.Ref.Key)
			}
		}
	}
	return all
}
