// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sink takes events to where people and programs read them: a terminal, a file, a
// webhook of a program or a chat service, Kubernetes Events, mail.
//
//	s, err := sink.New(ctx, "audit", options, deps)
//	runner, err := sink.NewRunner(sink.RunnerOptions{
//		Name: "audit", Sink: s, Outbox: sink.Journaled(j, "audit"), Delivery: options.Effective(),
//	})
//	err = runner.Run(ctx)
//
// Three things work together.
//
// [Options] describe a sink, in the words of the configuration. New checks them and makes
// the sink, without a connection to anybody.
//
// An [Outbox] holds what is still to be sent: [Journaled] is one in the journal, on disk,
// and [Direct] is one in memory, for use without a journal.
//
// A [Runner] takes events from the one to the other. It is the only one who does for its
// sink, and it waits for nobody else: a sink that is dead delays no other.
//
// # What a runner promises
//
// At least once: an event leaves the outbox after the sink has taken it. If the process
// dies between the two, or an answer is lost, the event is sent again. The ID is the same
// then, by which a receiver can tell.
//
// In order: an event is sent after those before it were taken, refused or dropped. What
// cannot be sent now is tried again, with longer and longer waits, and holds up what is
// behind it.
//
// Not for ever: what the receiver refuses for good is counted, and logged once for each
// reason. An event that has failed for [Delivery].MaxAge is dropped, which is counted and
// logged; the one after it is then tried at once, in case it was the event that was wrong.
// Events that were old before they were first tried are tried three times.
//
// [Runner.Status] says how it fares.
//
// # Secrets
//
// A value that may hold one is a [Secret], which cannot be printed. Many URLs do, so no URL
// is in an error or in the log, and what others have written, such as the answer of a
// server or the error of a library, goes through a filter that takes out all that it knows
// to be secret. This package reads no environment: [Deps].Secret does for it.
package sink
