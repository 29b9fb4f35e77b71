// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/assets"
	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/manage"
	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/scaffold"
	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/ui"
	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/up"
	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/why"
	"github.com/setpoint-io/setpoint/internal/cli"
)

// version is stamped by the linker.
var version = ""

func main() { os.Exit(run(context.Background(), cli.ThisProcess(), os.Args[1:])) }

// run runs the command line and returns the status to exit with: 0 is success, 1 is an
// error that was printed on standard error, 128 plus a signal's number is a signal that
// came before the command was done, anything else is the status of the command that
// "setpoint up" ran.
func run(ctx context.Context, w *cli.World, args []string) int {
	if len(args) > 0 && args[0] == "manager" {
		args = manage.JoinLevels(args)
	}
	root := rootCommand(w)
	return w.Run(ctx, root, "setpoint", asPlugin(root, os.Args[0], args))
}

// rootCommand returns "setpoint" with its commands.
func rootCommand(w *cli.World) *cobra.Command {
	root := &cobra.Command{
		Use:   "setpoint",
		Short: "Kubernetes controllers, and a cluster to run them in",
		Long: `Setpoint runs Kubernetes controllers: in a cluster of its own that one command
starts on this machine, or against any cluster that you have a kubeconfig of.`,
		Example: `  # a cluster on this machine, until Ctrl-C
  setpoint up

  # the controllers alone, against the cluster of your current kubeconfig
  setpoint manager

  # what changes in it
  setpoint watch

  # why something is as it is
  setpoint explain deploy/web

  # the same in a browser, with the loops and what happened
  setpoint ui

  # a controller of your own
  setpoint new example.com/website --group example.com --kind Website

  # tests that use envtest, without a download
  KUBEBUILDER_ASSETS="$(setpoint assets)" go test ./...`,
	}
	root.AddCommand(up.Command(w), manage.Command(w, version), why.Command(w), ui.Command(w), watchCommand(w, version), scaffold.Command(w, version), generateCommand(w, version),
		assets.Command(w), versionCommand(w))
	return root
}
