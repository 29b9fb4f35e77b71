// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// printMachine says where figures come from: without it they are numbers.
func printMachine(out io.Writer) {
	processor := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				processor = strings.TrimSpace(value)
				break
			}
		}
	}
	fmt.Fprintf(out, "# %d × %s, %s/%s, %s, client-go %s\n", runtime.NumCPU(), processor, runtime.GOOS, runtime.GOARCH,
		runtime.Version(), moduleVersion("k8s.io/client-go"))
}

// moduleVersion is the version of a module that is measured against.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "of an unknown version" // in a test's binary
}
