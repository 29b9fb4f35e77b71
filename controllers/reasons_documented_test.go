// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// code is how the controllers write the code of a reason: as a constant that begins with "code", or in place.
var code = regexp.MustCompile(`(?m)(?:^\s+[cC]ode\w+\s+=|Code:)\s+"([A-Z]\w+)"`)

// Codes of reasons are an interface: programs read them.
func TestEveryCodeOfAReasonIsDocumented(t *testing.T) {
	document, err := os.ReadFile("../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, folder := range []string{".", "../internal/replicas", "../internal/serviceendpoints"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path) //nolint:gosec // a file of the repository, which is not changed meanwhile
			if err != nil || !strings.Contains(string(source), "/controller\"") {
				return err
			}
			for _, match := range code.FindAllStringSubmatch(string(source), -1) {
				found++
				if !strings.Contains(string(document), "`"+match[1]+"`") {
					t.Errorf("%s: docs/explain.md does not have the code %s", path, match[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 40 {
		t.Errorf("only %d codes are found", found)
	}
}
