// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff says what is different between two states of an object, field by field.
//
// [Compare] takes two JSON trees and returns [Difference] after [Difference], in the order
// of their paths:
//
//	spec.replicas                              replace 3 → 5
//	spec.template.spec.containers[name=web].image  replace web:1 → web:2
//	metadata.labels[app.kubernetes.io/name]    add "web"
//	spec.args[2]                               remove "--verbose"
//
// A subtree that came or went is one difference, at its root. Lists are matched the way
// Kubernetes merges them: by the keys that a [Schema] gives for them, so that a container
// put in front of another is one addition. A schema comes from the Go types of a built-in
// kind ([Builtin]), from a CustomResourceDefinition ([FromCRD], [FromOpenAPI]), or knows
// the metadata alone, as every kind has it ([Generic]).
//
// Where a schema says nothing about a list, its shape decides. If all elements are objects
// with a name, key, type or id of their own, they are matched by it. Otherwise the list is
// a sequence: what both states have in common, in the same order, stays, and the rest
// was added, removed or replaced at its position. A key that occurs twice is no key: such
// a list is a sequence too.
//
// What counts as equal: numbers by their value, so 1 is 1.0; a nil map is an empty map.
// An absent field, null, an empty list and an empty object are four different things.
//
// Nothing is written to the trees, and the values in a Difference are parts of them. The
// package keeps no state; everything is safe for concurrent use as long as nobody writes
// to the trees.
package diff
