// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scripttest bounds the scripts that test the commands, those of
// github.com/rogpeppe/go-internal/testscript.
//
// A script starts shells, and these start processes. testscript waits until no process
// holds the output of a command any more, so it would wait for ever for a process that a
// failed shell leaves behind. [Guard] ends such processes, and names them.
//
// A shell that waits for something does so with the command eventually, which is
// [Eventually]: it has a deadline, and says what it waited for.
//
// A script runs the commands that documents show, and compares what they print, with
// [Documents] and [DocumentCommands].
package scripttest
