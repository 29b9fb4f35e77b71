// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"example.org/bad/internal/shared"
)

func TestPeeks(*testing.T) { _ = shared.Listen }
