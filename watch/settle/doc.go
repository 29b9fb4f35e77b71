// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settle merges the changes of an object that follow each other closely.
//
//	s := settle.New(settle.Options{Window: time.Second, Settle: 3 * time.Second, Merge: merge})
//	send(s.Add(e, now))  // for each event, in the order in which they happened
//	send(s.Due(now))     // at s.Next()
//	send(s.Flush())      // at the end
//
// A [Settler] has no clock, no goroutine and no channel. Its caller passes the time, and gets
// back the events that are ready now.
//
// # The window
//
// Changes of one object that come within [Options].Window of the first become one event,
// from the state before the first to the state after the last. Its Merged says how many
// they were and its Since when the first of them was seen. A creation that is followed by
// updates is a creation of the last state.
//
// # Coming to rest
//
// Some objects say whether they are ready: workloads, Nodes, and custom objects with the usual
// conditions. Their updates are held while they are on their way there. Once such an object has
// been at rest for [Options].Settle, one event of verb Settled says what became of it: "12
// changes in 8 s, now 10/10 ready", and what is still wrong with it (package trouble). Its authors
// are the managers that changed the desired state, or else all. After a minute an object that is
// not at rest is released as an update, in the state that it has then, and again after each further
// minute.
//
// # What is never held, and never lost
//
// A deletion is released at once. What was held of the object becomes part of it, also where
// the object was created and deleted within the window. A replacement, and an object that was
// there when the watch began, are released at once and alone. So is a creation if there is no
// window.
//
// For each object, events come out in the order in which they went in, and the last one
// has the last state. The sum of the changes that they stand for (Merged, or 1) is the number
// of changes that went in. Changes that lead back to where they began are an event without
// fields.
//
// At most 10,000 objects are held. Beyond that the oldest is released as it is. That bounds
// memory, whatever the cluster does.
//
// # What exists already
//
// kstatus (sigs.k8s.io/cli-utils) says whether an object is current, in progress or failed, by the
// same rules as readiness.go. It has no counts, such as "7/10 ready", which are the text of a
// summary.
package settle
