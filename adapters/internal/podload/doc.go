// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podload has what the benchmarks of the adapters share: a server with 20,000 objects in a
// process of its own, and what a process costs.
package podload
