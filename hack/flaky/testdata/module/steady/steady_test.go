// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package steady

import "testing"

func TestSteady(t *testing.T) {}
