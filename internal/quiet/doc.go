// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quiet makes TCP connections, and writes to pipes, without waking the system monitor of the Go runtime.
//
// The system monitor (sysmon) is a thread that retakes processors from goroutines in system calls, and preempts a goroutine that computes for more than 10 ms.
// It sleeps while the whole process waits. The next system call wakes it, because that call might block. A process that reads one event
// and waits again wakes it for each event: the monitor finds the process at rest 20 µs later and sleeps again. In a manager that got 700 events
// of Pods a second, the monitor took a third of the CPU of the process, and to wake it took another tenth: an event cost 165 µs, and 104 µs with the
// connections of this package. A CPU profile hardly shows it; the files of the threads in /proc do.
//
// A socket of the net package does not block: a read returns what has arrived, or nothing, and then the goroutine waits for the poller. So a
// connection of this package reads and writes with [syscall.RawSyscall], which is for calls that do not block and does not wake the monitor. After
// a read that fills its buffer, the next read is an ordinary one: where much arrives, goroutines may have much to do, and the monitor must be awake.
//
// A write to a pipe that blocks, such as standard output often is, may wait for its reader. [Pipe] writes only what the pipe has room for.
//
// # What it costs
//
// While the monitor sleeps, it preempts nothing. If goroutines that make no system call keep all processors, other goroutines wait until
// the monitor wakes, which is when the next timer is due. So there is a timer, every 250 ms, as long as a connection is open.
//
// Source: runtime, sysmon and entersyscall.
package quiet
