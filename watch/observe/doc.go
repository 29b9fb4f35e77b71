// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe makes an event of two states of an object.
//
// An [Observer] is made for a kind, with what is to be hidden, and is then asked for an
// event per change:
//
//	old, new ─▶ without managedFields ─▶ compared ─▶ fields, each with its class
//	                                              ─▶ authors, from managedFields
//	                                 ─▶ hidden values replaced ─▶ event.Event
//
// # Classes
//
// What is below status is status. Labels, annotations, finalizers and owners are
// metadata. What says only that somebody is alive, such as the renewTime of a Lease, is
// a heartbeat; the list of these is in heartbeat.go. Everything else is content, a
// deletion that was asked for included. A resourceVersion, a generation and managedFields
// are bookkeeping and are told of nowhere: a change of them alone is of class version.
//
// # Hidden values
//
// The values of Secrets are hidden always, and further ones by [Rule]. A hidden value is
// replaced by a text such as "(hidden 3f9a1c)". The tag changes with the value, so one
// sees that it changed. It is made with a key, the object's UID and the path, so nobody can
// try values against it, or find the same value elsewhere by it. What is compared are the
// real values; what is handed out is looked up in trees in which they are replaced.
//
// A hidden value also hides the copies of the object that deploying programs keep in
// annotations. Where an object is not built as a rule expects it, more is hidden, not
// less: data of a Secret that is no map is hidden as a whole.
//
// Hidden are values, not names: the keys of a Secret can be seen.
//
// # Digests
//
// A [Digest] is what a cursor keeps of an object in order to tell later whether, and in
// which respect, it changed: 16 bytes, made with a key, because a digest of a short secret
// would tell it to whoever can count.
//
// Nothing is written to the trees that are handed in.
package observe
