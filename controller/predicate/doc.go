// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package predicate has the usual answers to the question which events of an informer start a
// run. They are passed to the sources of a controller:
//
//	controller.For(pods, predicate.GenerationChanged)
//
// The type parameter need not be written there. If a source has several predicates, all of them
// must choose an event; [Either] returns a predicate for which one of several is enough.
//
//   - [GenerationChanged], [LabelsChanged], [AnnotationsChanged] choose among updates. They choose
//     every other event: an object that appears, is deleted, or replaces another one under its
//     name, and a resync.
//   - [Stays], [Gone], [Later] choose by what became of the object.
//   - [Selected] chooses by labels.
//
// None of them decodes a whole object. All are safe for concurrent use.
package predicate
