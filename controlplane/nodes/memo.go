// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// memo remembers when things happened to one Pod, exactly: the API keeps whole
// seconds. Without it, after a restart of the simulation, the times of the API
// are used, and what waits for one may come up to a second early.
type memo map[string]time.Time

// note remembers that what happened now.
func (m memo) note(what string, now time.Time) { m[what] = now }

// first remembers now unless what has happened before, and returns when it did.
func (m memo) first(what string, now time.Time) time.Time {
	if at, ok := m[what]; ok {
		return at
	}
	m[what] = now
	return now
}

// exact returns the exact time of what the API says happened at t.
func (m memo) exact(what string, t metav1.Time) time.Time {
	if at, ok := m[what]; ok && at.Truncate(time.Second).Equal(t.Truncate(time.Second)) {
		return at
	}
	return t.Time
}
