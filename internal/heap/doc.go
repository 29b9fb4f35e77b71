// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heap says how much garbage a command of Setpoint piles up between two collections, and returns memory to the
// system when the command comes to rest. "setpoint manager", "setpoint up" and "setpoint watch" use it. A library must not do
// this: the heap belongs to the whole program.
package heap
