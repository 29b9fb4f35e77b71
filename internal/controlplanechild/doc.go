// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplanechild runs setpoint-controlplane as a child process.
//
// The control plane links all of Kubernetes, and the rest of Setpoint links none
// of it: they meet in a protocol of JSON lines on the child's standard output,
// which is specified in the documentation of the command setpoint-controlplane.
//
// The child ends when its parent does, also by SIGKILL: it is given a pipe as its
// standard input and stops when that is closed. It runs in a process group of its
// own, so that a Ctrl-C at a terminal reaches the parent alone, which then decides
// the order in which things end.
package controlplanechild
