// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sink takes events to where people and programs read them: a terminal, a file, a
// webhook of a program or a chat service, Kubernetes Events, mail.
//
//	s, err := sink.New("audit", options, deps)
//	runner, err := sink.NewRunner(sink.RunnerOptions{
//		Name: "audit", Sink: s, Outbox: sink.Journaled(j, "audit", nil), Delivery: options.Effective(),
//	})
//	err = runner.Run(ctx)
//
// Three things work together.
//
// [Options] describe a sink, in the keys of the configuration. New checks them and makes the
// sink, and connects to nothing. Each sort of sink lies in a file of its own, with its options,
// their check and its Send.
//
// An [Outbox] holds the events that wait to be sent: [Journaled] is one in the journal, on disk,
// and [Direct] is one in memory, for use without a journal.
//
// A [Runner] takes events from one outbox to one sink. Each sink has a runner of its own, so a
// sink that is dead delays no other.
//
// # What a runner promises
//
// At least once: an event leaves the outbox after the sink has taken it. If the process dies
// between the two, or an answer is lost, the event is sent again with the same ID, so that a
// receiver can drop the second one.
//
// In order: an event is sent after those before it were taken, refused or dropped. An event that
// cannot be sent now is tried again, with longer and longer waits, and delays those behind it.
//
// Not for ever: an event that the receiver refuses for good is counted, and logged once for each
// reason. An event that has failed for [Delivery].MaxAge is dropped, which is counted and
// logged; the one after it is then tried at once, in case the event was wrong and not the
// receiver. Events that were old before their first attempt are tried three times.
//
// [Runner.Status] has the counts and the last error.
//
// # Secrets
//
// A value that may hold a secret is a [Secret], which cannot be printed. Many URLs do, so no URL
// is in an error or in the log. Texts from outside, such as the answer of a server or the error
// of a library, lose every word of a secret first. This package reads no environment:
// [Deps].Secret reads secrets for it.
//
// # What this package does not leave to a library
//
// CloudEvents have a module of their own, which brings a client with its own retries and
// transports. A request here is one POST of the JSON that package event encodes; the retries,
// their order and their journal are the purpose of this package. Files are rotated by lumberjack,
// and mail is sent by net/smtp.
package sink
