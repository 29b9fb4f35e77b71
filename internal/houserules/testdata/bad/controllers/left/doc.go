// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package left imports its sibling, and in its test what no test may.
package left

import _ "example.org/bad/controllers/right"
