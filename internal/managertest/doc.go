// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managertest runs controllers in tests as a process of their own would: with a
// manager, with credentials of its own, and to an end that may be an orderly stop or a
// kill.
//
//	process := managertest.Run(t, cluster.Config, managertest.Making(podgc.New, podgc.Defaults()))
//	...
//	process.Kill() // in the middle of its work
//
// [Alone] is one controller as a real process, "setpoint manager" under the rights of its
// manifest, which is killed by SIGKILL right after a write of its own.
//
// A process without controllers looks on: its manager is a place for informers.
package managertest
