// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Pictures draws what the command shows on a terminal, for the documents:
//
//	make pictures
//
// It runs "setpoint up" on a pseudo-terminal. In that cluster it runs "setpoint watch" on
// terminals of their own and has kubectl play small stories. It draws as SVG what the
// terminals showed: with text that can be selected, without fonts or scripts.
//
//   - first-minute.svg plays the first minute with Setpoint, again and again. Readers who
//     prefer reduced motion see its last frame.
//   - watch.svg and watch-diff.svg show the same changes in two formats.
//
// Pictures are dark or light as the reader prefers. Steps have a fixed pace, the times of
// events are made even, and names that a server makes at random are replaced, so that a new
// picture differs only where the output does. The seconds that "setpoint up" shows are those
// of its run.
//
// [screen] makes cells of what a terminal is sent, and [draw] makes SVG of cells; both are
// pure. The program needs Linux, for its pseudo-terminals.
package main
