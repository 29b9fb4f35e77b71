// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
)

func versionCommand(w *cli.World) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version, the version of Kubernetes that its types are from, and what it was built with.",
		Example: `  setpoint version
  setpoint version --output json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a := cli.WhatThisIs(version)
			switch output {
			case "text":
				_, err := fmt.Fprintln(w.Stdout, "setpoint", a)
				return err
			case "json":
				return json.NewEncoder(w.Stdout).Encode(a)
			}
			return fmt.Errorf("--output=%s: want text or json", output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}
