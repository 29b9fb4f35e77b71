// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A WriteOption changes how an object is written.
type WriteOption func(*writeOptions)

// writeOptions are the options of one write. The zero value is a plain write.
type writeOptions struct {
	fieldManager   string
	dryRun         bool
	force          bool
	noRetries      bool // a Retry-After is an error, for the caller to handle
	metadataAnswer bool
}

// FieldManager names the writer in the object's managedFields.
func FieldManager(name string) WriteOption {
	return func(o *writeOptions) { o.fieldManager = cmp.Or(name, o.fieldManager) }
}

// DryRun makes the server check the write and store nothing. A view made by With(DryRun())
// deletes nothing either.
func DryRun() WriteOption { return func(o *writeOptions) { o.dryRun = true } }

// NoRetries sends a write once. Without it, the client sends a write up to ten times more if
// the answer has a Retry-After: an eviction that a PodDisruptionBudget refuses with 10 s would
// hold its caller for more than 100 s. apierrors.SuggestsClientDelay has the time of the error.
func NoRetries() WriteOption { return func(o *writeOptions) { o.noRetries = true } }

// Force takes over fields that other managers own. It is for Apply.
func Force() WriteOption { return func(o *writeOptions) { o.force = true } }

// MetadataAnswer makes the server answer with only the metadata of the written object: the
// returned object has its metadata and nothing else. It is for callers that do not read the
// answer, and saves sending and decoding the rest:
//
//	writer := client.For[*corev1.Endpoints](c).With(client.MetadataAnswer())
func MetadataAnswer() WriteOption { return func(o *writeOptions) { o.metadataAnswer = true } }

// add adds options.
func (o *writeOptions) add(options []WriteOption) {
	for _, option := range options {
		option(o)
	}
}

// apply gives the request the options of a view and those of a single write. protobuf says
// whether the type of the answer can be read from protobuf.
func (r *Request) apply(view, single []WriteOption, protobuf bool) {
	o := &r.options
	o.add(view)
	o.add(single)
	r.Param("fieldManager", o.fieldManager)
	if o.dryRun {
		r.Param("dryRun", metav1.DryRunAll)
	}
	if o.force {
		r.Param("force", "true")
	}
	if o.metadataAnswer {
		accept := metadataTypes
		if !protobuf {
			accept = accept[1:]
		}
		r.Accept(accept...)
	}
}
