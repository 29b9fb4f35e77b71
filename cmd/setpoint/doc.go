// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint runs Kubernetes controllers.
//
//	setpoint up           a control plane, simulated nodes and the manager, on this machine
//	setpoint manager      the manager alone, against any cluster
//	setpoint explain      why an object is as it is
//	setpoint watch        what changes in a cluster, and who changed it
//	setpoint new          a module with a controller of one's own
//	setpoint generate     definitions, DeepCopy methods and rights, from types and markers
//	setpoint assets       kube-apiserver, etcd and kubectl for tests with envtest
//	setpoint version      what this is
//	setpoint completion   scripts that teach a shell the above
//
// The command is thin: it reads flags, the environment and signals, and calls
// packages that know of none of them. Messages for people go to standard error,
// and output for programs goes to standard output.
//
// "setpoint watch" and "setpoint generate" are programs of their own, setpoint-watch and
// setpoint-generate, which this one starts in its place: the conditions in CEL, the sinks and the readers
// of Go packages that they are built with cost binary and memory that the manager should not
// pay.
package main
