// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// Each command of the document is a case, with flags that the case has. The commands in the text
// count as those in the blocks.
func TestTheCommandsInTheDocumentsAreCases(t *testing.T) {
	command := regexp.MustCompile("go run \\. ([a-z][^`#\n]*)")
	for _, b := range documenttest.Blocks(t) {
		text, err := os.ReadFile("../" + b.File)
		if err != nil {
			t.Fatal(err)
		}
		if !command.MatchString(b.Text) {
			t.Errorf("%s has no command", b)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			args := strings.Fields(m[1])
			if err := run(t.Context(), append(args, "-h"), io.Discard); !errors.Is(err, flag.ErrHelp) {
				t.Errorf("%s: go run . %s: %v", b.File, m[1], err)
			}
		}
		if err := caseOfManager(string(text)); err != nil {
			t.Errorf("%s: %v", b.File, err)
		}
	}
}

// caseOfManager returns an error if a document has a case of managers that is not there: flags are
// parsed without it.
func caseOfManager(text string) error {
	for _, m := range regexp.MustCompile("--case ([a-z0-9]+)").FindAllStringSubmatch(text, -1) {
		if _, err := scaleCaseNamed(m[1]); err != nil {
			return err
		}
	}
	return nil
}
