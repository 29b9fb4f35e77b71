// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import _ "example.org/bad/internal/ladder"
