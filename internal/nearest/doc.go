// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nearest finds the name that a user may have meant by a name that does not
// exist.
package nearest
