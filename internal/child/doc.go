// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package child runs the control plane as a child process.
//
// The server lives in a binary of its own, setpoint-controlplane, so that the setpoint
// command stays small, the server's memory and CPU time can be measured apart from those
// of the controllers, and a test can kill it and start it again. What the two processes
// say to each other is specified in the documentation of that binary.
//
// The child does not outlive its parent: it ends when its standard input does. The parent
// holds the other end, which the kernel closes however the parent ended. It runs in a
// process group of its own, so that Ctrl-C on a terminal reaches the parent alone, which
// decides what stops when.
package child
