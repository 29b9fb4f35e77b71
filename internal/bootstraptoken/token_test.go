// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestATokenIsValidUntilItsEndAndNotAtAllIfThatCannotBeRead(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		expiration string
		left       time.Duration
		ends       bool
	}{
		{"", 0, false},
		{"2026-01-01T12:00:01Z", time.Second, true},
		{"2026-01-01T14:00:00+01:00", time.Hour, true},
		{"2026-01-01T12:00:00Z", 0, true},
		{"2025-01-01T12:00:00Z", 0, true},
		{"tomorrow", 0, true},
		{"2026-02-30T12:00:00Z", 0, true},
	} {
		secret := &corev1.Secret{Data: map[string][]byte{ExpirationKey: []byte(test.expiration)}}
		if left, ends := Left(secret, noon); left != test.left || ends != test.ends {
			t.Errorf("%q: %s, %t, want %s, %t", test.expiration, left, ends, test.left, test.ends)
		}
	}
	if _, ends := Left(&corev1.Secret{}, noon); ends {
		t.Error("a token without data has an end")
	}
}
