// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"testing"

	"github.com/setpoint-io/setpoint/adapters/internal/podload"
)

// TestMain has the test program be the server of the benchmarks as well.
func TestMain(m *testing.M) { podload.Main(m) }
