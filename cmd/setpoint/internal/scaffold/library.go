// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// library is the path of the module that the new one is built on.
const library = "github.com/setpoint-io/setpoint"

// notBuilt is the version of a library that is read from a folder.
const notBuilt = "v0.0.0"

var (
	released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	// describes are versions that "git describe" makes for a commit without a tag, or for
	// changes that are in no commit. The module proxy does not have them.
	describes = regexp.MustCompile(`-[0-9]+-g[0-9a-f]+(-dirty)?$|-dirty$`)
)

// isReleased reports whether a version of the library can be downloaded.
func isReleased(version string) bool {
	return released.MatchString(version) && !describes.MatchString(version)
}

// requireLibrary sets which library the module requires: the folder source, or else the
// version. If both are empty, it is the version of this program, or the checkout in whose
// folder bin this program lies.
func (n *names) requireLibrary(source, version, ownVersion, executable string) error {
	switch {
	case source != "":
		return n.readLibraryFrom(source)
	case version != "":
		if !isReleased(version) {
			return fmt.Errorf("--setpoint-version=%s: want a released version, such as v0.1.0", version)
		}
		n.Require = version
		return nil
	case isReleased(ownVersion):
		n.Require = ownVersion
		return nil
	}
	checkout := filepath.Dir(filepath.Dir(executable))
	if err := n.readLibraryFrom(checkout); err != nil {
		return fmt.Errorf("this program has version %q, which is no release, and it is not in the folder bin of a checkout: "+
			"name a release with --setpoint-version, or a checkout of Setpoint with --setpoint-source", ownVersion)
	}
	return nil
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
	if first, _, _ := strings.Cut(string(text), "\n"); strings.TrimSpace(first) != "module "+library {
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
