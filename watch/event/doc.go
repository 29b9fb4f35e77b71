// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event has the type that everything in watch speaks of: one change of one
// object, with what changed and who did it, and its encodings for machines.
//
// An Event is made once, from two states of an object, by package observe. From there on
// it holds nothing that must not be shown, and so whatever prints, sends or stores events
// needs to know nothing of secrets.
//
// Encode and Decode are its JSON, with the schema in docs/watch-events.md; CloudEvent
// wraps it as CloudEvents 1.0 asks.
package event
