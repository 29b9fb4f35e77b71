// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endtoend holds what the built-in controllers do together, as tests against a
// real API server with simulated nodes: one controller makes ReplicaSets of a Deployment,
// another makes Pods of these, a third gives the Pods an account, and kubectl reads all
// of it as a user does.
//
// Controllers know nothing of each other, so none of them can be tested for this
// in a folder of its own. There is no code here but tests.
package endtoend
