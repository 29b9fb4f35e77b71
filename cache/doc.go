// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps a local, always current copy of the objects of a kind, and
// tells handlers what changes.
//
// # The way of a change
//
//	API server ─▶ source ─▶ reflector ─▶ store ─▶ one delta queue a handler ─▶ handler
//	             decodes    keeps in     snapshots   coalesces
//	                        step
//
// A reflector lists a kind once and then watches it. It resumes a watch that ends
// where it ended, and lists again only where the server has forgotten that place.
// Each change goes into the store first and to the handlers after, so that a
// handler that looks into the store finds what it was told of, or something newer.
//
// # Readers
//
// A [Snapshot] is the state of a kind at one resourceVersion. Taking one costs
// nothing, reading from it takes no lock, and it never changes: readers and the
// writer do not wait for each other. [SharedInformer.Get] reads from the newest.
//
// Objects in a snapshot are shared by all readers. They are read-only: call
// DeepCopy before you change one.
//
// # Handlers
//
// A [Handler] is called by one goroutine of its own, with one [Event] at a time,
// in order for each object. What waits for a slow handler is kept once per object:
// changes of an object that the handler has not seen yet become one, from the
// oldest state that it knows to the newest. A handler that blocks for ever
// therefore holds memory in proportion to the number of objects, never to the
// number of changes, and delays nobody else. An object that came and went unseen
// is not told of. A handler that wakes a reader of snapshots asks for every change
// instead, see [HandlerOptions].
//
// Names are addresses and UIDs are identities: where an object was deleted and
// another one created under its name between two events, the event is [Replaced],
// not an update.
//
// # Sharing
//
// A [Factory] makes one informer for each selection of a kind, however many ask.
// [Informer] is how to ask:
//
//	pods := cache.Informer[*corev1.Pod](factory)
//
// When a server goes, its informers try again on their own, with growing pauses.
// The first one that reaches it wakes the others.
//
// # Versions
//
// An informer knows up to which resourceVersion it has seen its kind.
// [SharedInformer.Observed] waits until it has seen a given one; the controller
// package rests its reads of own writes on that.
package cache
