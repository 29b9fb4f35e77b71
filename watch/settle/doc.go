// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settle holds changes of an object back for a while, so that what belongs
// together is told as one.
//
//	s := settle.New(settle.Options{Window: time.Second, Settle: 3 * time.Second, Merge: merge})
//	tell(s.Add(e, now))  // for each event, in the order in which they happened
//	tell(s.Due(now))     // at s.Next()
//	tell(s.Flush())      // at the end
//
// A [Settler] has no clock, no goroutine and no channel: who drives it brings the time, and
// gets back the events that are to be told now.
//
// # The window
//
// Changes of one object that come within [Options].Window of the first become one event,
// from the state before the first to the state after the last. Its Merged says how many
// they were and its Since when the first of them was seen. A creation that is followed by
// updates is a creation of what they led to.
//
// # Coming to rest
//
// Where an object says of itself whether it is ready ([Readiness]), its updates are held
// for as long as it is on its way there. Once it has been at rest for [Options].Settle, one
// event of verb Settled says what became of it: "12 changes in 8 s, now 10/10 ready". An
// object that does not come to rest is told of after [Options].MaxHold as it is then, as
// an update, and again after the same time.
//
// # What is never held, and never lost
//
// A deletion is let go at once, and what was held of the object becomes part of it: also
// an object that was created and deleted within the window is told of. A replacement, and
// what was there when the watch began, are let go at once and alone. So is a creation, if
// there is no window.
//
// For each object, events come out in the order in which they went in, and the last one
// has the last state. The sum of what they stand for (Merged, or 1) is the number of
// changes that went in. Changes that lead back to where they began are an event without
// fields.
//
// At most [Options].Limit objects are held; beyond that the oldest is let go as it is. That
// bounds memory, whatever the cluster does.
package settle
