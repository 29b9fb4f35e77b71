// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operators has operators of other projects, which are written on controller-runtime: where
// their modules are, and which of their lines change so that they run on the cache of
// package adapters/controllerruntime. hack/conformance runs their tests, and the benchmark "operators"
// their binaries, both with and without the lines.
//
//   - [Operator.Copy] copies the modules of an operator to a folder, where the go command finds the
//     adapters.
//   - [Operator.Change] changes the lines. It fails if the operator makes a cache at another place too,
//     because that cache would be controller-runtime's on both sides of a comparison.
//   - [Operator.Restore] has the lines as they were.
package operators
