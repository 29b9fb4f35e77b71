// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endtoend holds what must survive the end of a process, as tests of the
// binaries that users run: "setpoint manager" is killed in the middle of rollouts,
// and the control plane goes away and comes back.
//
// A watcher beside them sees every version of every Pod, so that a bound which is
// broken for a moment is seen too. There is no code here but tests.
package endtoend
