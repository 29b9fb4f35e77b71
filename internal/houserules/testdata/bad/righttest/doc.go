// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package righttest serves tests alone, and so may print.
package righttest

import "fmt"

func Say() { fmt.Println("said") }
