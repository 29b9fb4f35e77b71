// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe makes an event of two states of an object. An [Observer] serves one kind:
//
//	old, new ─▶ without managedFields ─▶ compared ─▶ fields, each with its class
//	                                              ─▶ authors, from managedFields
//	                                 ─▶ hidden values replaced ─▶ event.Event
//
// # Classes
//
// Fields below status are status. Labels, annotations, finalizers and owners are metadata.
// Fields that are only a sign of life, such as the renewTime of a Lease, are heartbeats;
// heartbeat.go lists them. Everything else is content, also the request to delete an object. A
// resourceVersion, a generation and managedFields are bookkeeping: they are no fields of an event,
// and a change of them alone is of class version.
//
// # Hidden values
//
// The values of Secrets are always hidden, and further values by [Rule]. A text such as
// "(hidden 3f9a1c)" replaces a hidden value. The tag changes with the value, so a reader sees
// that the value changed. It is made with a key, the object's UID and the path, so values
// cannot be tried against it, and the same value is not recognized elsewhere. Comparisons are
// between the real values. Everything in an event comes from trees in which they are
// replaced.
//
// A hidden value also hides the copies of the object that deploying programs keep in
// annotations. Where an object does not have the shape that a rule expects, more is hidden, not
// less: data of a Secret that is no map is hidden as a whole.
//
// Names are not hidden: a reader sees the keys of a Secret.
//
// # Digests
//
// A cursor keeps a [Digest] of each object, 16 bytes, by which it notices later whether, and in
// which respect, the object changed. It is made with a key: the digest of a short secret would
// reveal the secret to an attacker who tries all values.
//
// The encoding that is digested is our own (digest.go), and part of what a cursor's file means:
// another encoding would make every object look changed after an upgrade.
//
// An Observer does not write to the trees that it gets.
package observe
