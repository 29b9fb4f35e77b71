// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quiet makes TCP connections that leave the monitor of the Go runtime asleep.
//
// The runtime has a thread, the monitor, that looks after goroutines in system calls, and ends the turn of one that computes for more than 10 ms.
// It sleeps while the whole process waits, and the next system call wakes it, as that call might block. In a process that wakes for one event, reads it
// and waits again, the monitor wakes as often, finds the process at rest 20 µs later, and sleeps again. In a manager that got 700 events
// of Pods a second, its thread took a third of the CPU of the process, and to wake it took another tenth: an event cost 165 µs, and 104 µs with the
// connections of this package. A CPU profile hardly shows it.
//
// A socket of the net package does not block: a read returns what is there, or nothing, and then the goroutine waits for the poller. So a
// connection of this package reads and writes without telling the scheduler that a system call begins ([syscall.RawSyscall], which is for calls that do not
// block). After a read that fills its buffer, the next one does tell it: where much arrives, goroutines may have much to do, and the monitor is to be awake.
//
// # What it costs
//
// While the monitor sleeps, it ends no turn. If all processors have goroutines that compute without any system call, other goroutines wait until
// the monitor wakes, which is when the next timer is due. So there is a timer, every 250 ms, as long as a connection is open.
//
// Source: runtime, sysmon and entersyscall.
package quiet
