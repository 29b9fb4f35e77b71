// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package seconds

import (
	"math"
	"time"
)

// Duration returns n seconds. A number that does not fit is the nearest duration that does, which
// for all purposes is for ever.
func Duration(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	switch {
	case n > most:
		return math.MaxInt64
	case n < -most:
		return math.MinInt64
	}
	return time.Duration(n) * time.Second
}
