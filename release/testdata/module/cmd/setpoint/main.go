// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint stands in for the real command in tests.
package main

import "os"

var version = ""

func main() {
	if os.Args[1] == "completion" {
		_, _ = os.Stdout.WriteString("script of " + version + " for " + os.Args[2] + "\n")
		return
	}
	_, _ = os.Stdout.WriteString(`{"name":"setpoint","usage":"setpoint","short":"Small","long":"Small.","commands":[{"name":"setpoint watch","short":"elsewhere"},{"name":"setpoint generate","short":"elsewhere"}]}`)
}
