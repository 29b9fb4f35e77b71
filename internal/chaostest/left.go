// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chaostest

import (
	"runtime"
	"strings"
	"time"
)

// Left waits until no goroutine has a function on its stack whose name contains
// part, and returns the stacks of those that stay. It is for a synctest bubble,
// in which time passes only when all others wait.
func Left(part string) []string {
	var left []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if left = with(part); len(left) == 0 {
			return nil
		}
	}
	return left
}

func with(part string) (found []string) {
	stacks := make([]byte, 1<<20)
	for n := runtime.Stack(stacks, true); n == len(stacks); n = runtime.Stack(stacks, true) {
		stacks = make([]byte, 2*len(stacks))
	}
	for stack := range strings.SplitSeq(strings.TrimRight(string(stacks), "\x00"), "\n\n") {
		if strings.Contains(stack, part) {
			found = append(found, stack)
		}
	}
	return found
}
