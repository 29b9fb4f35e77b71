// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint-watch is "setpoint watch": it tells what changes in a cluster, and who changed
// it. The command setpoint hands over to it.
//
//	setpoint watch [KIND,KIND...]     until Ctrl-C
//	setpoint watch --once --cursor F  what has changed since the last time
//	setpoint watch check -f FILE      is this configuration right?
//	setpoint watch manifests -f FILE  what a cluster must have to run it
//
// It is a program of its own because of what it is built with: conditions in CEL cost 15 MB of
// binary and 7 MB of memory that a manager of controllers should not pay.
//
// Like setpoint it is thin: it reads flags, a file, the environment and signals, makes
// options of them and calls package watch. Where a flag and the file say different things
// the flag wins.
package main
