// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain says why an object is as it is.
//
//	answer := explain.Tell(facts)
//	answer.Write(os.Stdout) // for people; answer is JSON for programs
//
// # Facts
//
// [Facts] are plain values: the state of the object, of its owners and of what it owns, Events, and the entries about
// it in the record of runs of the managers. The caller collects them. This package sends no requests and reads no clock.
//
// # The answer
//
// An [Answer] begins with one sentence. The order of blame is: what the object itself waits for, as a controller has
// stated it; what is wrong with it, as its own state says it; the deepest object below it that is in trouble; a controller
// whose runs fail. If none of these is found, all is as it should be. A sentence has a stable code beside its words.
//
// After that come the chain of causes that led to the newest write, the reasons why controllers did not act and what would
// end the wait, the objects below that are in trouble, two writers that fight about a field, keys that run without effect,
// the field managers with their fields, and Events.
//
// # What happened
//
// [WhatHappened] answers another question: what changed in a namespace within the last minutes. It joins recorded writes,
// the managedFields of objects and Events to groups, each with what began it, such as "rollout of web". Objects that do not
// exist any more are named as long as the record has them.
//
// # What is inferred
//
// Inferred facts are marked: if no record has the author of a change, the managedFields of the object name "probably" the
// author. Facts that are not known have lines of their own: [Answer].Unknown.
package explain
