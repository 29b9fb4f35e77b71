// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names under which kubectl finds plugins, and what completes their arguments.
// Source: k8s.io/kubectl/pkg/cmd, NewDefaultPluginHandler and SetupPluginCompletion.
const (
	pluginName     = "kubectl-setpoint"
	completionName = "kubectl_complete-setpoint"
)

// asPlugin makes the command the plugin of kubectl that it is called as: "kubectl setpoint explain"
// in its help, and the arguments of a completion. Another name changes nothing.
func asPlugin(root *cobra.Command, called string, args []string) []string {
	switch strings.TrimSuffix(filepath.Base(called), ".exe") {
	case pluginName:
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl setpoint"}
	case completionName:
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}
