// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather collects the facts that package explain makes an answer of.
//
//	g := gather.Gatherer{Client: c, Record: gather.Local(m.Runs())}
//	facts, err := g.Facts(ctx, resource, key)
//	answer := explain.Tell(facts)
//
// # Sources
//
// The state of the object, the objects below it and the Events about it come from the API server, with the rights of the
// client. Objects below are those that the object owns, those that these own, and so on; for a Service, a
// PodDisruptionBudget and a Node they are the Pods that it selects or runs.
//
// What controllers did and why comes from a [Record]: that of this process ([Local]), that of a manager elsewhere
// ([Remote]), or none ([None]).
//
// # A namespace
//
// [Gatherer.Changed] collects what [explain.WhatHappened] makes an answer of: the recorded runs that wrote in a namespace,
// its Events, and the metadata of its objects.
//
// # Facts that cannot be read
//
// A list that fails, and a record that does not answer, are no errors. The facts name them, so that the answer can say
// what is not known. Only an object that cannot be read is an error.
package gather
