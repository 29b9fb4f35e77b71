// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Write describes a write that has returned. A write to a subresource is a write to the object
// that it changes: see [Sub].
type Write struct {
	Verb     string // create, update, patch, delete, deletecollection
	Resource object.Resource
	Key      object.Key // Name is empty if it is not known
	UID      types.UID
	// Version is the resourceVersion that the write made. It is zero for a
	// delete, for a write that changed nothing, and where Unknown.
	Version object.Version
	// Unknown is set if there was no answer, or a server error: the server may have carried out the write.
	Unknown bool
	// Code is the HTTP status of a server error, such as 500, after which the outcome is Unknown; 0 if there was no answer.
	Code int
	// Subresource is the one that was written, such as "status", or empty.
	Subresource string
	// Manager is the field manager that the write named, or empty.
	Manager string
	// Before is the resourceVersion that the object had to have, or empty.
	Before object.Version
	// Patch is what was sent, if the write is a patch. As with Object, a Recorder keeps no pointer to it.
	Patch *Patch
	// Client sent the write, and can read its outcome.
	Client *Client
	// Object is the object in the server's answer, as it is after the write, or a
	// *metav1.PartialObjectMetadata if only that was requested. It is nil if the answer is
	// not an object, or if there is none. It belongs to the caller that wrote: a Recorder
	// reads it before Record returns, and keeps no pointer to it.
	Object object.Object
}

const (
	verbUpdate = "update"
	verbDelete = "delete"
)

// Recorder records the writes made with a context. The goroutine that writes calls Record
// before the write returns. Record must be safe for concurrent use.
type Recorder interface{ Record(Write) }

// RefusalRecorder is a Recorder that also records the writes that the server refused. The server has changed nothing.
// The goroutine that writes calls RecordRefused before the write returns, with the error that it returns.
type RefusalRecorder interface {
	Recorder
	RecordRefused(Write, error)
}

// Annotator is a Recorder that adds annotations to the objects that are created with its context.
type Annotator interface {
	Recorder
	// Annotate returns an annotation for a new object, or an empty name. It is called before the request is sent. Of the
	// write, Verb, Resource and Key are known.
	Annotate(Write) (name, value string)
}

// annotated returns an object with the annotations of the recorders of ctx. It is a copy if there are any.
func annotated[T object.Object](ctx context.Context, w Write, o T) T {
	recorders, _ := ctx.Value(recorderKey{}).([]Recorder)
	for _, r := range recorders {
		by, ok := r.(Annotator)
		if !ok {
			continue
		}
		name, value := by.Annotate(w)
		if name == "" {
			continue
		}
		if copied, ok := o.DeepCopyObject().(T); ok {
			all := map[string]string{name: value}
			for other, text := range o.GetAnnotations() {
				if other != name {
					all[other] = text
				}
			}
			copied.SetAnnotations(all)
			o = copied
		}
	}
	return o
}

type recorderKey struct{}

// WithRecorder returns a context whose writes r records, besides the recorders that ctx has
// already.
func WithRecorder(ctx context.Context, r Recorder) context.Context {
	before, _ := ctx.Value(recorderKey{}).([]Recorder)
	return context.WithValue(ctx, recorderKey{}, append(slices.Clip(before), r))
}

func record(ctx context.Context, w Write) {
	recorders, _ := ctx.Value(recorderKey{}).([]Recorder)
	for _, r := range recorders {
		r.Record(w)
	}
}

// recordRefused calls the recorders that record refused writes.
func recordRefused(ctx context.Context, w Write, err error) {
	recorders, _ := ctx.Value(recorderKey{}).([]Recorder)
	for _, r := range recorders {
		if r, ok := r.(RefusalRecorder); ok {
			r.RecordRefused(w, err)
		}
	}
}
