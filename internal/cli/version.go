// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime"
	"runtime/debug"
)

// About is what a program says of itself.
type About struct {
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

// WhatThisIs describes the program. The version is the one that the linker stamped; empty
// is that of the module, as "go install …@version" knows it.
func WhatThisIs(version string) About {
	a := About{Version: version, Kubernetes: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return a
	}
	if a.Version == "" {
		a.Version = info.Main.Version
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" {
			a.Kubernetes = module.Version
		}
	}
	return a
}

// String says it in a line.
func (a About) String() string {
	return a.Version + ", for Kubernetes " + a.Kubernetes + ", built with " + a.Go + " for " + a.Platform
}
