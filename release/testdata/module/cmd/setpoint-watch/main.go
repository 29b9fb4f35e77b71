// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint-watch stands in for the real command in tests.
package main

import "os"

var version = ""

func main() {
	_, _ = os.Stdout.WriteString(`{"name":"setpoint watch","usage":"setpoint watch","short":"Watch","long":"Watch with ` + version + `."}`)
}
