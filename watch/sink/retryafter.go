// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestRetryAfter is the longest wait that a receiver can ask for.
const longestRetryAfter = time.Hour

// retryAfter returns the wait that the header Retry-After has: seconds, or a date. It is 0 if
// there is no header, or one that cannot be read.
// Source: https://www.rfc-editor.org/rfc/rfc9110#name-retry-after.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		wait = time.Duration(min(seconds, uint64(longestRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestRetryAfter)
}
