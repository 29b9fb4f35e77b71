// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package up is "setpoint up": a cluster on this machine for as long as the command runs.
//
// The command line ([Command]) starts a session: the control plane as a child process, a
// manager of the chosen controllers, and a command of the user's in the cluster, if there is
// one. The session ends in the reverse order.
package up
