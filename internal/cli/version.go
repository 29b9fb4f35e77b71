// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// About describes a program.
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
			a.Kubernetes = kubernetesOf(module.Version)
		}
	}
	return a
}

// kubernetesOf returns the version of Kubernetes that a version of its modules belongs to: they
// are v0.37.2 where Kubernetes is v1.37.2.
// Source: https://github.com/kubernetes/client-go, README, Versioning.
func kubernetesOf(module string) string {
	if rest, found := strings.CutPrefix(module, "v0."); found {
		return "v1." + rest
	}
	return module
}

// String says it in a line.
func (a About) String() string {
	return a.Version + ", for Kubernetes " + a.Kubernetes + ", built with " + a.Go + " for " + a.Platform
}
