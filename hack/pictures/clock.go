// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"time"
)

const (
	clock = "15:04:05.000"
	// reaction is how long after a step its first line is, and between the lines of one.
	reaction, between = 80 * time.Millisecond, 11 * time.Millisecond
)

// timestamp is a time at the beginning of a line, as watch/format paints it.
var timestamp = regexp.MustCompile(`(?m)^(\x1b\[2m)\d\d:\d\d:\d\d\.\d{3}(\x1b\[0m)`)

// even gives the events of a step times that are the same every time.
func even(shown string, step time.Time) string {
	at := step.Add(reaction)
	return timestamp.ReplaceAllStringFunc(shown, func(s string) string {
		parts := timestamp.FindStringSubmatch(s)
		now := at
		at = at.Add(between)
		return parts[1] + now.Format(clock) + parts[2]
	})
}
