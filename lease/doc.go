// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease chooses one of several processes, by a Lease of coordination.k8s.io.
//
//	elector, err := lease.New(client, lease.Config{Key: key, Identity: identity, Timing: lease.DefaultTiming})
//	term, err := elector.Acquire(ctx)  // stands by until the lease is ours
//	... work for as long as term.Context() has not ended ...
//	err = term.Release(ctx, "")            // the next one begins at once
//
// The record in the Lease is the one that client-go's leader election writes, so a
// process of either kind stands by while one of the other holds the lease.
//
// # Who holds the lease, and until when
//
// A holder writes the time into the Lease again and again. No other process relies on
// that time: a process that stands by notes on its own clock when it received the last
// change, and takes the lease when there has been none for the duration that the record
// names. The holder counts from a moment that is earlier, that at which it sent its last
// renewal that succeeded, and stops earlier, after [Timing].RenewDeadline. Between the
// two ends lies a margin, for clocks that run at different speeds and for writes on their
// way. Each change of the record names the version that it was made for, so of two
// processes that take the lease at the same moment the server refuses one.
//
// A process that stands by watches the Lease. When the holder releases it, the next one
// has it after the time of one event and one write. A holder watches too: it notices at
// once that its Lease was deleted, or that a user has edited the holder.
//
// # Being certain
//
// [Term.Certain] answers at any moment whether the lease is held, from two clocks alone:
// the monotonic one, which cannot be set, and the wall clock, which runs while a machine
// sleeps. A process that was stopped and continued finds its time over before it finds
// anything else, whatever its timers say by then. A controller that calls it before each
// write never writes in the term of another process, except in the moment between the
// call and the kernel. The context of a Term ends requests on their way.
//
// # Identities
//
// Whether a record is its own, a process knows by the times in it, which it wrote, and
// not by the name of the holder: two processes that were given one identity by mistake
// do not lead at the same time.
//
// What remains is a Lease deleted by hand: a process that starts in that moment, and so has
// never seen a holder, creates a new one at once. The holder ends its term as soon as its watch
// reports the deletion, within milliseconds.
package lease
