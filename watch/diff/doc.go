// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff finds what is different between two states of an object, field by field.
//
// [Compare] takes two JSON trees and returns [Difference] after [Difference], in the order
// of their paths:
//
//	spec.replicas                              replace 3 → 5
//	spec.template.spec.containers[name=web].image  replace web:1 → web:2
//	metadata.labels[app.kubernetes.io/name]    add "web"
//	spec.args[2]                               remove "--verbose"
//
// A subtree that was added or removed is one difference, at its root. Lists are matched the
// way Kubernetes merges them: by the keys that a [Schema] has for them. A container that was
// put in front of another is one addition. A schema comes from the Go types of a built-in
// kind ([Builtin]) or from a CustomResourceDefinition ([FromCRD]). [Generic] knows the
// metadata alone, which every kind has.
//
// Where a schema says nothing about a list, its shape decides. If all elements are objects
// with a name, key, type or id of their own, they are matched by it. Otherwise the list is
// a sequence: what both states have in common, in the same order, stays. The rest was
// added, removed or replaced at its position. A key that occurs twice is no key: such
// a list is a sequence too.
//
// Numbers are equal by their value: 1 is 1.0. A nil map is an empty map. An absent field,
// null, an empty list and an empty object are four different things.
//
// [ParsePath] reads paths back from their text.
//
// # What exists already
//
// structured-merge-diff compares objects of a server with the server's own schema. It says which
// fields differ, without values and positions, takes an atomic list as one value, and needs a
// schema for every type. go-cmp compares Go values for tests, and does not match lists by their
// keys. JSON patches name the elements of lists by position.
//
// Compare does not write to the trees. The values of a Difference are parts of them. The
// package has no state. Everything is safe for concurrent use while nothing writes to the
// trees.
package diff
