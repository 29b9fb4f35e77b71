// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// notBuilt is the version of a library that is read from a folder.
const notBuilt = "v0.0.0"

// requireLibrary sets which library the module requires: the folder source, or else the
// version. If both are empty, it is the version of this program, or the checkout in whose
// folder bin this program lies.
func (n *names) requireLibrary(source, version, ownVersion, executable string) error {
	switch {
	case source != "":
		return n.readLibraryFrom(source)
	case version != "":
		if !cli.Released(version) {
			return fmt.Errorf("--setpoint-version=%s: want a released version, such as v0.1.0", version)
		}
		n.Require = version
		return nil
	case cli.Released(ownVersion):
		n.Require = ownVersion
		return nil
	}
	checkout := cli.Checkout(executable)
	if checkout == "" {
		return fmt.Errorf("this program has version %q, which is no release, and it is not in the folder bin of a checkout: "+
			"name a release with --setpoint-version, or a checkout of Setpoint with --setpoint-source", ownVersion)
	}
	return n.readLibraryFrom(checkout)
}

func (n *names) readLibraryFrom(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return fmt.Errorf("--setpoint-source: want a checkout of Setpoint: %w", err)
	}
	if first, _, _ := strings.Cut(string(text), "\n"); strings.TrimSpace(first) != "module "+cli.ModulePath {
		return fmt.Errorf("--setpoint-source=%s: want a checkout of Setpoint; its go.mod begins with %q", dir, first)
	}
	n.Require, n.Source = notBuilt, quoted(dir)
	return nil
}

// quoted returns a path as go.mod writes it: in quotes if it has other than plain characters.
// Source: https://go.dev/ref/mod#go-mod-file-lexical.
func quoted(path string) string {
	if strings.ContainsAny(path, " \t\"'`()[]{},") || strings.Contains(path, "//") {
		return strconv.Quote(path)
	}
	return path
}
