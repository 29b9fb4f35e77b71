// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/generate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "setpoint generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c := command(os.Stderr)
	if slices.Equal(args, []string{describeName}) {
		return describe(c, os.Stdout)
	}
	c.SetArgs(args)
	return c.ExecuteContext(ctx)
}

// errStale is the error of --check.
var errStale = errors.New("files are out of date: run \"setpoint generate\"")

func command(say io.Writer) *cobra.Command {
	var (
		options generate.Options
		check   bool
	)
	c := &cobra.Command{
		Use:         "setpoint-generate [PACKAGE...]",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "setpoint generate"},
		Short:       "Write definitions, DeepCopy methods and rights from types and markers",
		Long: `Write what follows from the types of an API and from the markers beside them:

  config/crd/GROUP_PLURAL.yaml   a CustomResourceDefinition for each kind
  config/rbac/role.yaml          the rights that +kubebuilder:rbac markers name
  zz_generated.deepcopy.go       methods that copy objects, beside the types

The markers are those of Kubebuilder: https://book.kubebuilder.io/reference/markers.
Without arguments, all packages of the module are read. If one of them has a
mistake, nothing is written.`,
		Example: `  setpoint generate

  # in CI: fail if a file is out of date
  setpoint generate --check`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, args []string) error {
			options.Patterns = args
			files, err := generate.Run(c.Context(), options)
			if err != nil {
				return err
			}
			return finish(say, files, check)
		},
	}
	flags := c.Flags()
	flags.StringVar(&options.Dir, "dir", ".", "`folder` of the Go module")
	flags.StringVar(&options.CRDs, "crd-dir", "config/crd", "`folder` for CustomResourceDefinitions, in that of the module")
	flags.StringVar(&options.Roles, "rbac-dir", "config/rbac", "`folder` for rights, in that of the module")
	flags.StringVar(&options.RoleName, "role-name", "", "`name` of the ClusterRole; by default the one in role.yaml")
	flags.BoolP("help", "h", false, "help for generate")
	flags.BoolVar(&check, "check", false, "write nothing, and fail if a file is out of date")
	return c
}

// finish writes the files that have changed, or only names them.
func finish(say io.Writer, files []generate.File, check bool) error {
	stale := false
	for _, f := range files {
		if f.Changed {
			stale = true
			_, _ = fmt.Fprintln(say, shown(f.Path))
		}
	}
	switch {
	case len(files) == 0:
		_, _ = fmt.Fprintln(say, "There is nothing to generate: no package has the markers of a kind, of DeepCopy methods or of rights.")
		return nil
	case !stale:
		_, _ = fmt.Fprintln(say, "All files are up to date.")
		return nil
	case check:
		return errStale
	}
	return generate.Write(files)
}

// shown returns a path as the user would write it.
func shown(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(short) {
		return path
	}
	return short
}
