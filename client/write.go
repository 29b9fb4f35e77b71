// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Write is what is known of a write once it has returned. A write to a subresource is one of
// the object that it changes: see [Sub].
type Write struct {
	Verb     string // create, update, patch, delete, deletecollection
	Resource object.Resource
	Key      object.Key // Name is empty where it is not known
	UID      types.UID
	// Version is the resourceVersion that the write made. It is zero for a
	// delete, for a write that changed nothing, and where Unknown.
	Version object.Version
	// Unknown: no answer came, the write may have happened or not.
	Unknown bool
	// Client sent the write, and can be used to read what became of it.
	Client *Client
	// Object is what the server answered with: the object as it is after the write, or a
	// *metav1.PartialObjectMetadata where no more was asked for. It is nil where the server
	// answers with something else, or not at all. It belongs to the caller that wrote: a
	// Recorder reads it before Record returns, and keeps no pointer to it.
	Object object.Object
}

const (
	verbUpdate = "update"
	verbDelete = "delete"
)

// Recorder is told of the writes made under a context. Record is called by the
// goroutine that wrote, before the write returns, and must be safe for concurrent
// use.
type Recorder interface{ Record(Write) }

type recorderKey struct{}

// WithRecorder returns a context whose writes r is told of, beside those that are
// told already.
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
