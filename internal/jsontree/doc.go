// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsontree reads single values of an object that was decoded to maps and lists. A
// value that is absent, or of another type, reads as the zero value: objects come from
// outside, and their readers have no other use for a malformed one.
package jsontree
