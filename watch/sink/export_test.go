// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"net/url"
	"time"
)

// RetryAfter is retryAfter.
func RetryAfter(header string, now time.Time) time.Duration { return retryAfter(header, now) }

// CleanOfURL takes what is secret in the URL of a webhook out of a text.
func CleanOfURL(raw, text string) string {
	var s scrubber
	if u, err := url.Parse(raw); err == nil {
		s.addURL(u)
	}
	return s.clean(text)
}
