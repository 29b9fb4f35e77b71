// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal runs programs on terminals of their own, as a person would, and keeps what they show. "setpoint up" prints
// the address of its page on a terminal only.
//
//	p, err := terminal.New(ctx, 120, "bin/setpoint", "up")
//	err = p.Start()
//	err = p.Until(ctx, time.Minute, func(shown string) bool { return strings.Contains(shown, "ready") })
//	err = p.End()
//
// A program ends with the process that started it, however that ends: its terminal is closed then, and the kernel sends it
// SIGHUP. Terminals of Linux are known.
package terminal
