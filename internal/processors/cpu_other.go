// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package processors

import "time"

// cpuTime is not known here.
func cpuTime() (used time.Duration, ok bool) { return 0, false }
