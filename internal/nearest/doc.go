// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nearest finds the name that somebody may have meant who wrote another one.
package nearest
