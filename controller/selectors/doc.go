// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selectors finds objects by label selectors, in both directions.
//
// Services, ReplicaSets, PodDisruptionBudgets and many other objects have a label
// selector. Their controllers ask two questions:
//
//   - Which of these objects select a Pod that has changed? [Index.Selecting] answers.
//   - Which Pods does one of these objects select? [Labelled.Selected] answers.
//
// Both answers come from indexes of the informers, so they are kept up to date with
// every event, and an answer costs about as much as it has results: the other selectors
// and the other Pods of the namespace do not matter.
//
// # The index of selectors
//
// An [Index] keeps the selectors of a namespace in a tree. The way to a selector is what
// it requires of labels, "key=value", in the order of keys. Selectors that begin with
// the same requirements share the beginning of the way:
//
//	app=shop                      longer selectors begin like this
//	├── component=cart            Service cart
//	└── component=till            Service till
//
// To find the selectors that match a set of labels, the index follows each label from
// each place that it has reached. A selector at the end of a way matches, and the object
// is not decoded to find that out.
//
// A requirement "key in (a, b)" makes a way for each value. The other requirements
// ("key exists", "key notin (a, b)", …) are not part of the way. A selector that has such
// requirements is decoded and compared when its way is reached. A selector that has
// no others is compared with every set of labels of its namespace.
//
// # The index of labels
//
// A [Labelled] keeps the objects under each of their labels. To find the objects that a
// selector matches, it compares the selector with the objects that have the rarest label
// among those that the selector requires. Only a selector that requires no value of
// any label is compared with all objects of the namespace.
package selectors
