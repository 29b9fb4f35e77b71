// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trouble finds what is wrong with objects, and reports each thing once.
//
//	t := trouble.New()
//	news := t.Observe(object, uid, trouble.Of(kind, old), trouble.Of(kind, new), now)
//	...                           // at t.Next(), for each object that t.Due returns:
//	news = t.Observe(object, uid, signs, signs, now)
//
// # Signs
//
// [Of] reads the signs of an object from its state: for each thing that can be wrong with objects of
// its kind, whether it is good, bad, or not to be known. Of Pods these are the image, the start and
// the end of each container, the scheduling, evictions and preemptions, and readiness. Of most kinds
// these are conditions. A table (conditions.go) says which status of which condition is bad, for
// which reasons, and what is normal for a while. A kind that is not in the table follows the
// conventions: Stalled, Degraded or Failed is True; Ready, Available or Succeeded is False.
//
// # Episodes
//
// A container that crashes flips between CrashLoopBackOff and Running. A [Tracker] makes one episode
// of that:
//
//   - The beginning is reported when the sign has been bad for as long as such a state may be
//     normal: at once for a crash, after 3 s for a Pod without a Node, after 2 min for one that is
//     not ready.
//   - Repetitions are counted. An episode that becomes worse is reported once more: the first crash
//     and the crash loop are two reports.
//   - The end is reported when the sign has been good for 10 s. A container must have run twice as
//     long as before its last crash, for 30 s at least and 10 min at most.
//   - Minor signs follow from others: that a Pod is not ready is not reported while its image cannot
//     be pulled.
//
// What was bad in the first state that is known of an object is not reported, since it did not begin
// now. Its end is. An object that is deleted, and a Pod that is being deleted, end their episodes
// without a report.
//
// # Restarts and bounds
//
// [Tracker.Encode] returns the episodes of an object as text, for a file, and [Tracker.Restore]
// brings them back. A test restarts after any step of any story, and compares.
//
// Only objects with an episode take memory, and at most 50,000 of them. Beyond that an arbitrary
// object is forgotten for each new one.
//
// # What exists already
//
// kstatus (sigs.k8s.io/cli-utils) says of some kinds whether an object failed, from one state. It
// knows neither containers nor Nodes, and has no memory that would make one report of many states.
// kube-state-metrics with Prometheus does it with rules over time series, minutes later.
package trouble
