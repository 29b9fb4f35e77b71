// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package legacytokencleaner

import (
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// Labels of a Secret. The server writes the first and obeys the second. Both are days
// of UTC, and in that form the order of texts is that of days.
// Source: k8s.io/kubernetes/pkg/serviceaccount, legacy.go.
const (
	lastUsed     = "kubernetes.io/legacy-token-last-used"
	invalidSince = "kubernetes.io/legacy-token-invalid-since"
)

// unused reports whether a token was not used for a period, by the server's record. The
// error is that the day of its last use cannot be read.
func unused(secret object.Meta, now time.Time, period time.Duration) (bool, error) {
	if !secret.Created.Before(now.Add(-period)) || secret.Deleting() {
		return false, nil
	}
	used, noted := secret.Labels.Lookup(lastUsed)
	if !noted {
		return true, nil // never since uses are noted
	}
	if _, err := time.Parse(time.DateOnly, used); err != nil {
		return false, err
	}
	return used < now.Add(-period).Format(time.DateOnly), nil
}

// step is what comes next for an unused token.
type step int

const (
	leave step = iota
	mark
	remove
)

func next(secret object.Meta, now time.Time, period time.Duration) step {
	since := secret.Labels.Get(invalidSince)
	if _, err := time.Parse(time.DateOnly, since); err != nil {
		return mark // there is none, or none that can be read
	}
	if since >= now.Add(-period).Format(time.DateOnly) {
		return leave
	}
	return remove
}
