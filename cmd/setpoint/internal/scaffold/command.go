// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// scaffold is one run of the command.
type scaffold struct {
	w *cli.World
	names

	dir             string
	source, version string // of the library
	skipTidy        bool
}

// Command returns "setpoint new". version is that of this program.
func Command(w *cli.World, version string) *cobra.Command {
	s := &scaffold{w: w}
	c := &cobra.Command{
		Use:   "new MODULE --group GROUP --kind KIND",
		Short: "Write a module with a controller for a kind of your own",
		Long: `Write a Go module with a controller for a kind of your own: the type, its
CustomResourceDefinition, the controller, its rights, tests with and without a
cluster, a program, and what runs it in a cluster. It builds and passes its tests
as it is; replace what the example does by what you need.

The module is written into a folder of its name. "go mod tidy" then completes
go.mod, and may download modules.`,
		Example: `  setpoint new example.com/website --group example.com --kind Website

  # a kind whose objects belong to no namespace
  setpoint new example.com/team --group example.com --kind Team --cluster-scoped

  # with a short name for kubectl, and on a checkout of Setpoint
  setpoint new example.com/backup --group storage.example.com --kind Backup --version v1alpha1 \
    --short-name bk --setpoint-source ~/setpoint`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one argument, the path of the new module, such as example.com/website")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			s.Module = args[0]
			return s.run(c.Context(), cli.WhatThisIs(version).Version)
		},
	}
	flags := c.Flags()
	flags.StringVar(&s.Group, "group", "", "API `group` of the kind: a domain of yours, such as example.com")
	flags.StringVar(&s.Kind, "kind", "", "name of the `kind` in CamelCase, such as Website")
	flags.StringVar(&s.Version, "version", "v1", "`version` of the API")
	flags.StringVar(&s.Plural, "plural", "", "`name` of the kind in URLs; by default the plural of the kind")
	flags.StringVar(&s.ShortName, "short-name", "", "short `name` for kubectl; none by default")
	flags.BoolVar(&s.ClusterScoped, "cluster-scoped", false, "objects of the kind belong to no namespace")
	flags.StringVar(&s.dir, "dir", "", "`folder` to write to; by default the last element of the module path")
	flags.StringVar(&s.version, "setpoint-version", "", "`version` of Setpoint to build on; by default that of this program")
	flags.StringVar(&s.source, "setpoint-source", "", "`folder` of a checkout of Setpoint to build on")
	flags.BoolVar(&s.skipTidy, "skip-tidy", false, "do not run go mod tidy")
	_ = c.MarkFlagDirname("dir")
	_ = c.MarkFlagDirname("setpoint-source")
	cli.ExplainFlagErrors(c, nil)
	return c
}

func (s *scaffold) run(ctx context.Context, ownVersion string) error {
	switch {
	case s.Group == "":
		return errors.New("--group is missing: want a domain of yours, such as --group example.com")
	case s.Kind == "":
		return errors.New("--kind is missing: want the name of the new kind, such as --kind Website")
	}
	if err := s.derive(); err != nil {
		return err
	}
	if err := s.requireLibrary(s.source, s.version, ownVersion, s.w.Executable); err != nil {
		return err
	}
	if s.dir == "" {
		s.dir = folderOf(s.Module)
	}
	if err := checkEmpty(s.dir); err != nil {
		return err
	}
	goCommand := ""
	if !s.skipTidy {
		var err error
		if goCommand, err = findGo(); err != nil {
			return err
		}
	}
	paths, err := s.write(s.dir)
	if err != nil {
		return fmt.Errorf("writing the module: %w", err)
	}
	s.say("A controller for %s.%s, in the folder %s:\n\n  %s\n\n", s.Plural, s.Group, s.dir, strings.Join(paths, "\n  "))
	if s.Source != "" {
		s.say("Setpoint is read from %s.\n", s.Source)
	}
	if goCommand != "" {
		s.say("Running go mod tidy.\n")
		if err := tidy(ctx, goCommand, s.dir, s.w.Environ); err != nil {
			return err
		}
		if path := workspace(ctx, goCommand, s.dir, s.w.Environ); path != "" {
			s.say("The folder is below %s, which does not use it: run \"go work use %s\" in %s.\n", path, s.dir, filepath.Dir(path))
		}
	}
	s.next()
	return nil
}

// next says what the user can do now.
func (s *scaffold) next() {
	s.say("\nNext:\n\n  cd %s\n", s.dir)
	if s.skipTidy {
		s.say("  go mod tidy            complete go.mod\n")
	}
	s.say("  go test -short ./...   test it without a cluster\n")
	s.say("  make test-cluster      test it in a cluster, which \"setpoint up\" starts and stops\n")
	if _, err := exec.LookPath("setpoint"); err != nil {
		s.say("\nThe commands there call setpoint, which is not in PATH: add %s to it.\n", filepath.Dir(s.w.Executable))
	}
	s.say("\nREADME.md there says how to run it, change it and deploy it.\n")
}

func (s *scaffold) say(format string, args ...any) { _, _ = fmt.Fprintf(s.w.Stderr, format, args...) }
