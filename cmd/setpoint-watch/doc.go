// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint-watch is "setpoint watch": it tells what changes in a cluster, and which user or
// program changed it. The command setpoint hands over to it.
//
//	setpoint watch [KIND,KIND...]     until Ctrl-C
//	setpoint watch --once --cursor F  what has changed since the last time
//	setpoint watch check -f FILE      is this configuration right?
//	setpoint watch manifests -f FILE  what a cluster must have to run it
//
// It is a program of its own because of its dependencies: conditions in CEL cost 15 MB of binary
// and 7 MB of memory, which a manager of controllers should not need.
//
// Like setpoint it is thin: it reads flags, a file, the environment and signals, makes options of
// them and calls watch.NewPipeline. A flag wins over the file. What a pipeline cannot know stays
// here: what a terminal is, how a shell completes a flag, and how --once becomes an exit status.
package main
