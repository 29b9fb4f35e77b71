// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event has the type that the packages below watch have in common: one change of one
// object, with what changed and who changed it, and its encodings for machines.
//
// Package observe makes an Event from two states of an object. An Event holds no hidden
// values, so code that prints, sends or stores events needs no care for secrets.
//
// Encode and Decode are its JSON, with the schema in docs/watch-events.md. CloudEvent
// wraps it as CloudEvents 1.0.
package event
