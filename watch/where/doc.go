// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package where compiles and evaluates the conditions that users write about events, in CEL.
//
//	c, err := where.Compile(`event.verb == "updated" && new.spec.replicas > old.spec.replicas`)
//	...
//	matches, err := c.Matches(e)
//
// CEL is the language of Kubernetes' own policies: https://cel.dev. Each of its loops ends, and
// it cannot change anything.
//
// # Variables
//
//   - event: what happened, with the fields of the event's JSON (docs/watch-events.md):
//     event.verb, event.kind, event.apiVersion, event.group, event.resource,
//     event.namespace, event.name, event.uid, event.resourceVersion, event.classes,
//     event.fields (each with path, op, from, to, class, hidden), event.authors (each with
//     manager, operation, subresource, time), event.trouble (each with about, reason, message,
//     exitCode, restarts, since), event.missed, event.stale, event.merged,
//     event.time, event.since, event.summary, and event.initial, which is true for an object
//     that was there when the watch began. All of them exist in each event; they may be empty.
//   - old and new: the object before and after. old is null for a creation, and new for a
//     deletion.
//   - object: new, or old for a deletion.
//
// Beside CEL's own functions there are cel-go's extensions for strings (charAt, indexOf,
// lastIndexOf, join, lowerAscii, upperAscii, replace, split, substring, trim), lists
// (distinct, flatten, reverse, slice, sort, sortBy, lists.range) and sets (sets.contains,
// sets.equivalent, sets.intersects); isSorted, sum, min, max, indexOf and lastIndexOf of
// lists, as Kubernetes' policies have them; and optional values:
// object.?spec.replicas.orValue(1) > 2. There is no format(): a width in a format can ask
// for a text of any length. The pattern of matches() is a literal, so that Compile finds a
// mistake in it.
//
// # Mistakes
//
// [Compile] checks the names of variables, of functions and of the fields of event, types, values
// that a field of event never has (event.verb == "updatd"), and that the result is true or
// false. Its error is a [CompileError], which shows the place:
//
//	the condition is wrong: undefined field 'verbs'
//	    event.verbs == "updated"
//	         ^
//	did you mean "verb"?
//
// Objects have no types here, so a field that an object does not have is found when it is
// read. Then the event does not match, and Matches returns an error that wraps [ErrAbsent], for
// the caller to count. Most often it is no mistake: one condition may be about several kinds.
// has(object.spec.replicas) tests for a field. A call or an operator that fails, such as a
// division by zero, is [ErrFailed].
//
// # What it costs
//
// An evaluation that would take more than some tenths of a second ends with [ErrCost],
// whatever the condition and the object: neither can hold up the watch. Conditions that
// people write take microseconds. cel-go counts the cost of an evaluation and stops it. It
// counts a call only after the call, so a call that alone costs too much is not made
// (prices.go). cel-go has no such bound, which is why this package prices calls itself.
//
// # What is our own
//
// The extensions are those of cel-go, with three additions. The functions on lists that
// Kubernetes' policies have (lists.go) exist only in k8s.io/apiserver, which would bring an API
// server's dependencies with it. The types of event (environment.go) let the compiler find a
// wrong name. The checks of values and patterns (values.go, mistake.go) find conditions that
// are valid CEL and can never be true.
package where
