// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package own belongs to the controller above it, which is allowed.
package own

import _ "example.org/bad/controllers/right"
