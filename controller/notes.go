// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/fieldpaths"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// notes are what the loop notes of one run of a Reconciler: its writes and its reasons.
type notes struct {
	writes   writes // that the informers may not have seen
	panicked bool   // set by the worker alone

	mu      sync.Mutex
	written []runs.Write
	reasons []runs.Reason
	// These two are set by the first object that the run creates, if runs carry a trace context.
	number      uint64
	traceparent string

	contexts []string // of the objects that the run is about; set by the worker alone
}

// record gets the recorder of the loop's runs.
func (c *core) record() {
	if c.runs == nil {
		return
	}
	group, kind := c.objects()
	c.recorder = c.runs.Loop(c.name, group, kind)
}

// objects returns the kind that the keys stand for; an empty one if they are no objects.
func (c *core) objects() (group, kind string) {
	if c.primary == (cache.Handle{}) {
		return "", ""
	}
	return c.primary.GroupKind()
}

// recordRun records a run that has ended.
func (c *Keyed[K]) recordRun(item *workqueue.Item[K], n *notes, outcome runs.Outcome, err error, next time.Duration) runs.Place {
	if c.recorder == nil {
		return runs.Place{}
	}
	if n.panicked && outcome == runs.Failed {
		outcome = runs.Panic
	}
	n.mu.Lock() // a goroutine that the Reconciler has left behind may still write
	defer n.mu.Unlock()
	ended := runs.Ended{
		Causes: item.Causes, Priority: int(item.Priority), Attempt: item.Attempt,
		Delayed: item.Delayed, Before: item.Held, Queued: item.Waited - item.Held,
		Began: item.Began, Took: time.Since(item.Began), Outcome: outcome, Next: next,
		Writes: n.written, Reasons: n.reasons, Number: n.number, Contexts: n.contexts,
	}
	if err != nil {
		ended.Error = withoutValues(err)
		// A server that cannot call a webhook answers 500, which does not say that it has refused the write.
		if reason, known := refusal("write", runs.Object{}, err); known && reason.Code == WebhookFailed {
			reason.Text = "the admission webhook {webhook} cannot be called, so the server refuses a write"
			ended.Reasons = append(ended.Reasons, reason)
		}
	}
	return runs.Add(c.recorder, item.Key, &ended)
}

// withoutValues returns the text of an error. A server that finds an object invalid quotes the values of its fields,
// which the record must not have: the text then names the fields.
func withoutValues(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return err.Error()
	}
	d := status.ErrStatus.Details
	var fields []string
	for _, cause := range d.Causes {
		fields = append(fields, cause.Field+" ("+string(cause.Type)+")")
	}
	return fmt.Sprintf("%s %q is invalid: %s", d.Kind, d.Name, strings.Join(fields, ", "))
}

// Record implements client.Recorder.
func (n *notes) Record(write client.Write) {
	c := n.writes.loop
	if c.recorder != nil {
		n.note(write, write.Code)
	}
	if !c.staleReads {
		n.writes.Record(write)
	}
}

// RecordRefused implements client.RefusalRecorder. A write that was not sent is no write of the record.
func (n *notes) RecordRefused(write client.Write, err error) {
	var status apierrors.APIStatus
	if n.writes.loop.recorder != nil && errors.As(err, &status) {
		of := n.note(write, int(status.Status().Code))
		if reason, known := refusal(write.Verb, of, err); known {
			n.because(reason)
		}
	}
}

// note adds a write to what is recorded of the run, and returns its object.
func (n *notes) note(write client.Write, code int) runs.Object {
	c := n.writes.loop
	w := runs.Write{
		Verb: write.Verb, Subresource: write.Subresource, Version: string(write.Version), Code: code, Unknown: write.Unknown, Manager: write.Manager,
		Object: runs.ObjectOf(object.Ref{Group: write.Resource.Group, Kind: write.Resource.Kind, Key: write.Key, UID: write.UID}),
		Fields: c.changed(&write),
	}
	if w.Verb == verbDeleteCollection {
		w.Unknown = false // that no single outcome is known says the verb
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = append(n.written, w)
	return w.Object
}

// changed returns the paths of the fields that a write changed, as far as they are known: those of a patch, and the
// difference between the state that an update was made from and the answer.
func (c *core) changed(write *client.Write) []string {
	group, kind := write.Resource.Group, write.Resource.Kind
	switch {
	case write.Patch != nil && write.Patch.Type == types.JSONPatchType:
		return fieldpaths.OfJSON(group, kind, write.Patch.Data)
	case write.Patch != nil:
		return fieldpaths.OfMerge(group, kind, write.Patch.Data)
	case write.Verb != "update" || write.Object == nil || write.Before.IsZero():
		return nil
	}
	for _, informer := range c.informers {
		if !shows(informer, *write) || !sameServer(informer.Client(), write.Client) {
			continue
		}
		if m, shown := informer.Meta(write.Key); !shown || m.UID != write.UID || m.Version != write.Before {
			continue
		}
		if before, err := c.states[informer](write.Key); err == nil && before.GetResourceVersion() == string(write.Before) {
			return fieldpaths.Between(group, kind, before, write.Object)
		}
	}
	return nil
}
