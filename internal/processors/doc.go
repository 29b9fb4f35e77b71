// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package processors has a command of Setpoint run on as few processors as it uses. "setpoint manager" and "setpoint watch"
// use it. A library must not do this: the scheduler belongs to the whole program.
//
// A controller manager mostly waits: for a server that answers, for an event. Each answer wakes a goroutine, which wakes another.
// If the Go scheduler may use several processors (GOMAXPROCS), it looks for one that is idle each time, wakes a thread there, and
// that thread spins for a while when it finds nothing more to do. In a manager that runs an indexed Job of 2,000 Pods and uses a sixth of
// a processor for it, that was a sixth of all its CPU: 1.56 s, and 1.30 s without it, in the same time by the clock. On a machine
// that it shares with the API server, the server has what is saved.
//
// So a [governor] watches what the process uses, and sets GOMAXPROCS to it. It begins with all processors: a process that starts has
// much to read.
package processors
