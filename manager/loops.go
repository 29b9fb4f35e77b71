// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/setpoint-io/setpoint/controller"

// loopsOf returns the loops of a part: those that controller.Join joined, or the part itself if
// it is a loop.
func loopsOf(part Runnable) []controller.Loop {
	switch part := part.(type) {
	case interface{ Loops() []controller.Loop }:
		return part.Loops()
	case controller.Loop:
		return []controller.Loop{part}
	}
	return nil
}
