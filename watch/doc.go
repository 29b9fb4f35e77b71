// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch is Chronos: it watches objects of any kinds and tells of every change,
// who made it and what it changed.
//
// # The way of a change
//
//	informer ─▶ follower ─▶ filter ─▶ settle ─▶ route ─▶ journal ─▶ sinks
//	every step  old and      classes,  gathers   to        cursor     in order,
//	            new make     CEL       changes   whom      and        until they
//	            an event               to one              outbox     are taken
//
// There is a follower for each kind and namespace. It takes each step of its informer,
// makes an event of it (package observe) and hands it to the teller, of which there is
// one. The teller leaves out what nobody wants to see, holds back what is not at rest yet,
// and commits what is to be told together with the cursor that moves past it, as one
// transaction. A sink that is slow or away therefore loses nothing, and neither does a
// crash at any moment.
//
// A [Watch] tells a function, or puts events into a journal. A [Pipeline] has the journal
// and the sinks too: a configuration in, and what a manager runs out.
//
// # After a stop
//
// The journal knows up to which resourceVersion each selection has been told of, and the
// version and a digest of each of its objects. At the start a follower asks the server for
// every step since then. A server that no longer has them answers so, and then the state
// is compared with the digests: many changes of an object are told as one, and a deletion
// as a deletion. Either way the events say that they were missed.
//
// What was committed and not yet acknowledged by a sink is sent again, and what was not
// committed is found again. So each change is told at least once. Event.ID is the same
// each time.
//
// # Kinds come and go
//
// The server is asked every ten seconds which kinds it serves, as long as one is waited for,
// and otherwise once a minute. One that was asked for by name and appears is followed from
// its first object on; with a journal also if it appears between two runs. One that is not
// served any more is told of up to there. That it is gone does not tell of deletions: its
// server may be away. What has changed is told if it comes back, in whichever version. One
// that the account may not read holds nobody up: the log names it, and its informer tries
// again.
//
// # Whose it is
//
// A Watch is something that a manager runs. Its Run is called once; its other methods are
// safe for concurrent use.
package watch
