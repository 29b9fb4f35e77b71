// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"fmt"
	"time"
)

// How long certificates last. Source:
// k8s.io/kubernetes/pkg/controller/certificates/signer/signer.go. The longest lifetime is
// that of cmd/kube-controller-manager.
const (
	// LongestLifetime is the default of the longest time that a certificate is valid.
	LongestLifetime = 365 * 24 * time.Hour
	// ShortestLifetime is how long a certificate is valid whose request names less.
	ShortestLifetime = 10 * time.Minute
	// Backdate is how long before its signature a certificate begins.
	Backdate = 5 * time.Minute

	// Of certificates that last this long or longer, the backdate is part of the
	// lifetime; it is about a hundredth of it then.
	short = 8 * time.Hour
)

// lifetime returns how long a certificate is valid whose request names these seconds.
// nil: the request names none.
func lifetime(seconds *int32, longest time.Duration) time.Duration {
	if seconds == nil {
		return longest
	}
	return min(max(time.Duration(*seconds)*time.Second, ShortestLifetime), longest)
}

// validity returns when a certificate begins and ends. It ends with its authority at the
// latest; one whose authority has ended cannot be.
func validity(now time.Time, lasts time.Duration, authorityEnds time.Time) (from, to time.Time, err error) {
	if !now.Before(authorityEnds) {
		return from, to, fmt.Errorf("the certificate authority has expired at %s; replace it", authorityEnds.UTC().Format(time.RFC3339))
	}
	from, to = now.Add(-Backdate), now.Add(lasts)
	if lasts >= short {
		to = to.Add(-Backdate)
	}
	if to.After(authorityEnds) {
		to = authorityEnds
	}
	return from, to, nil
}
