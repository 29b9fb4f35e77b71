// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestRetryAfter is the longest that a receiver is left alone because it asks to be.
const longestRetryAfter = time.Hour

// retryAfter returns how long the header Retry-After asks to wait: seconds, or a date. It
// is 0 if there is none, or if it makes no sense.
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
