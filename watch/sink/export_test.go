// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import "time"

// RetryAfter is retryAfter.
func RetryAfter(header string, now time.Time) time.Duration { return retryAfter(header, now) }

// CleanOfService takes what is in the URL of a service out of a text.
func CleanOfService(raw, text string) string {
	var s scrubber
	s.addService(raw)
	return s.clean(text)
}

// Status is status.
func StatusOf(err error) int { return status(err) }

// SendWith replaces the call of the library.
func SendWith(s Sink, send func(string) error) { s.(*notify).send = send }

// Services are the schemes that are known.
func Services() []string {
	var names []string
	for name := range services {
		names = append(names, name)
	}
	return names
}
