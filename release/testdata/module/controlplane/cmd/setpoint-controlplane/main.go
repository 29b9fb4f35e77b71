// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint-controlplane stands in for the real program in tests.
package main

import "os"

var kubernetes = ""

func main() { _, _ = os.Stdout.WriteString("Kubernetes " + kubernetes + "\n") }
