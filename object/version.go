// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import "fmt"

// Version is a resourceVersion: a decimal number of any length, in the order in
// which the API server stored its writes. The zero Version is before every
// other.
//
// Kubernetes promises since 1.35 (KEP-5504, comparable resource versions) that
// two resourceVersions of one kind can be compared as integers, and that they
// may outgrow 64 bits. A Version therefore stays a string and is compared by
// length, then by digits. Comparing Versions of two kinds means something only
// where both are kept in one etcd.
type Version string

// ParseVersion checks that s is empty or a decimal number without leading zeros. "0",
// which requests any version from a server, is before all versions that a server sends.
func ParseVersion(s string) (Version, error) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || (s[i] == '0' && i == 0 && len(s) > 1) {
			return "", fmt.Errorf("resourceVersion %q is not a decimal number", s)
		}
	}
	if s == "0" {
		return "", nil
	}
	return Version(s), nil
}

// Compare returns -1 if v is older than w, 1 if it is newer, 0 if they are the same.
func (v Version) Compare(w Version) int {
	switch {
	case len(v) < len(w):
		return -1
	case len(v) > len(w):
		return 1
	case v < w:
		return -1
	case v > w:
		return 1
	}
	return 0
}

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool { return v.Compare(w) >= 0 }

// IsZero reports whether v is the version before all others.
func (v Version) IsZero() bool { return v == "" }
