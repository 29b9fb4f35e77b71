// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands of this repository have in common: the process that
// they run in, and the flags that mean the same in each.
//
// A [World] is what a command knows of its process; [ThisProcess] is the real one, and a
// test makes its own. [World.Run] runs a command line in it and returns the exit status.
// [Target] chooses the cluster, [Logging] what is logged and how, [Answering] where the
// process serves health and metrics, and [Electing] how processes elect a leader. Each
// adds its flags to a set, and turns their values into the options of other packages.
// [World.UntilSignal] ends a context by Ctrl-C. [ExplainFlagErrors] makes a command
// explain what is wrong with a flag, and suggest the one that was meant.
//
// It counts as part of the commands: it reads flags, environment and streams as they do,
// and nothing else may import it.
package cli
