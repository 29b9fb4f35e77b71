// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
)

// ModulePath is the path of the module that the commands and the library are in.
const ModulePath = "github.com/setpoint-io/setpoint"

var (
	released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	// describes are versions that "git describe" makes for a commit without a tag, or for
	// changes that are in no commit. The module proxy does not have them.
	describes = regexp.MustCompile(`-[0-9]+-g[0-9a-f]+(-dirty)?$|-dirty$`)
)

// Released reports whether the go command can download this version of the module.
func Released(version string) bool {
	return released.MatchString(version) && !describes.MatchString(version)
}

// Checkout returns the checkout of the module in whose folder bin a program lies, or "".
func Checkout(executable string) string {
	dir := filepath.Dir(filepath.Dir(executable))
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if first, _, _ := bytes.Cut(text, []byte("\n")); err != nil || string(bytes.TrimSpace(first)) != "module "+ModulePath {
		return ""
	}
	return dir
}
