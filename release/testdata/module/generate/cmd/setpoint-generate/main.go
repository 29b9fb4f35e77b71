// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint-generate stands in for the real program in tests.
package main

import "os"

func main() {
	_, _ = os.Stdout.WriteString(`{"name":"setpoint generate","usage":"setpoint generate","short":"Generate","long":"Generate."}`)
}
