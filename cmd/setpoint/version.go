// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// about is what "setpoint version" says.
type about struct {
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func versionCommand(w *world) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Long:  "Say which version this is, of which version of Kubernetes its types are, and what it was built with.",
		Example: `  setpoint version
  setpoint version --output json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a := whatThisIs()
			switch output {
			case "text":
				_, err := fmt.Fprintf(w.stdout, "setpoint %s, for Kubernetes %s, built with %s for %s\n", a.Version, a.Kubernetes, a.Go, a.Platform)
				return err
			case "json":
				return json.NewEncoder(w.stdout).Encode(a)
			}
			return fmt.Errorf("--output=%s: want text or json", output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func whatThisIs() about {
	a := about{Version: version, Kubernetes: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return a
	}
	if a.Version == "" {
		a.Version = info.Main.Version // of "go install …@version"
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" {
			a.Kubernetes = module.Version
		}
	}
	return a
}
