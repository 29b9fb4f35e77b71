// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ladder is how object reaches what stands above it.
package ladder

import _ "example.org/bad/cache"
