// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package linecount counts the lines of a program. Its tests hold that the examples state
// their length: each beside the same program on client-go and on controller-runtime,
// which are in bench/peers and are compiled with it.
//
// What counts is a line with code: not an empty one, and not one with nothing but a
// comment. All Go files of a folder count but its tests. The programs are formatted by
// gofmt and wrapped alike, so that a line is much the same amount of text in each.
package linecount
