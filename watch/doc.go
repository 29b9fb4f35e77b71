// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch is Chronos: it watches objects of any kinds and publishes every change, with
// its author and the fields that changed.
//
// # The way of a change
//
//	informer ─▶ follower ─▶ filter ─▶ settle ─▶ route ─▶ journal ─▶ sinks
//	every step  old and      classes,  merges    to        cursor     in order,
//	            new make     CEL       changes   sinks     and        until the
//	            an event                                   outbox     receiver has it
//
// Each kind and namespace has a follower. It reads each step of its informer, makes an event of it
// (package observe) and submits it to the publisher, of which there is one. The publisher drops
// events that the options do not ask for, merges changes of objects that are not at rest (package
// settle), and commits the rest together with the cursor that moves past it, as one transaction. So
// nothing is lost when a sink is slow or away, nor in a crash at any moment.
//
// A [Watch] calls a function with events, or puts them into a journal. A [Pipeline] has the journal
// and the sinks too: it is made from a configuration, and a manager runs it.
//
// # Bytes
//
// An informer of a built-in kind has its objects as protobuf, that of another kind as JSON. Two states are decoded together
// ([cache.TreesOf]): what has the same bytes in both is decoded once, and package diff passes over it. In a profile with 10,000
// Pods and 300 changes a second, decoding two states from JSON was 28 % of the CPU, and to receive that JSON another quarter.
//
// # After a stop
//
// The journal has, for each selection, the resourceVersion up to which everything was published, and
// the version and a digest of each object. At the start a follower asks the server for
// every step since then. If the server no longer has them, the follower compares the state with the
// digests: many changes of an object become one event, and an object that is gone a deletion. In
// both cases the events say that they were missed.
//
// The journal has the troubles of each object too (package trouble), so that none is published twice.
//
// Events that were committed and that a sink has not acknowledged are sent again. Changes that were
// not committed are found again. So each change is published at least once, with the same Event.ID
// each time.
//
// # Trouble
//
// Changes of the status alone are most of what a cluster writes, and are not published by default.
// What is wrong with an object is: the publisher gives the signs of each state to a tracker of
// package trouble, and publishes its news as events of their own (troubles.go). Time alone may begin
// or end a trouble. Then the state is read from the informer, and if that is ahead of the reports
// of its follower, the next report decides.
//
// # Kinds come and go
//
// The watch asks the server which kinds it serves: every ten seconds while it waits for a kind, and
// otherwise once a minute. It watches the definitions of kinds while it waits, and asks at once when
// one is there; an account that may not read them loses seconds and nothing else. A kind that was named and appears is followed from its first object on;
// with a journal also if it appears between two runs. Of a kind that is not served any more,
// everything up to there is published. Its objects are not deleted then: the server of the kind may
// be away. If the kind comes back, in any version, its changes since then are published. A kind that
// the account may not read keeps no other waiting: the log names it, and its informer tries again.
//
// No wait is silent: a discovery, a first list and a replay that take long are in the log.
//
// # Why so much
//
// An informer and a function would print changes. Half of this package is about the places where
// they would lose some: a restart (replay.go, steps.go, cursor.go), a sink that is away
// (publisher_commit.go), events that wait to be merged (held.go), a kind whose definition or server
// goes and comes back (watch.go, and legacy in follower.go). Each of them has a test that kills or
// breaks the real thing, and compares what arrived with what was written.
//
// # Use
//
// A manager runs a Watch. Run is called once; the other methods are safe for concurrent use.
package watch
