// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"time"

	"github.com/setpoint-io/setpoint/internal/pause"
)

// Within asks until something holds, and reports whether it did within a time. It pauses between two looks, at least for least and
// longer if a look takes long. A look that begins in time counts.
func Within(limit, least time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); ; {
		began := time.Now()
		if holds() {
			return true
		}
		if began.After(end) {
			return false
		}
		time.Sleep(pause.Between(time.Since(began), least))
	}
}
