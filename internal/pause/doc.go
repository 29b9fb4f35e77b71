// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pause waits for a time, and no longer than a context lasts.
package pause
