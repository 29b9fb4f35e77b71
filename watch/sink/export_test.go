// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"crypto/x509"
	"net"
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

// With returns dependencies as a test needs them: with a clock, with the certificates of a mail
// server, and with another way to its address.
func (d Deps) With(clock func() time.Time, roots *x509.CertPool, dial func(context.Context, string) (net.Conn, error)) Deps {
	d.clock, d.roots, d.dial = clock, roots, dial
	return d
}

// Steady returns options whose waits are as long as they are said to be.
func (o RunnerOptions) Steady() RunnerOptions {
	o.jitter = func(d time.Duration) time.Duration { return d }
	return o
}

// SendTest is test.
func SendTest(ctx context.Context, s Sink) error { return test(ctx, s) }
