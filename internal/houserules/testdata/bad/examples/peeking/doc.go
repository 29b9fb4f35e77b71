// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command peeking is an example whose test imports what its readers cannot.
package main

func main() {}
