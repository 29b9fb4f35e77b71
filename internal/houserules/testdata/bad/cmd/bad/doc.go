// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bad breaks no rule: a command may do all of this.
package main

import (
	"fmt"
	"net"
	"os"

	_ "example.org/bad/cache"
	_ "example.org/bad/internal/ladder"
	_ "example.org/bad/internal/shared"
)

func main() {
	_, err := net.Listen("tcp", os.Args[1])
	fmt.Println(err)
}
