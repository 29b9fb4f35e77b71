// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const document = "../../docs/testing.md"

// blocks returns the blocks of the document in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block of %s", document, language)
	}
	return found
}

func TestTheCodeOfTheDocumentIsThatOfTheProgram(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		program.WriteString("\n")
		program.Write(text)
	}
	for _, block := range blocks(t, "go") {
		if !strings.Contains(program.String(), "\n"+block+"\n") {
			t.Errorf("%s has code that is not in the program:\n%s", document, block)
		}
	}
}

// The commands start a cluster, and run the tests of this folder in it.
func TestTheCommandsOfTheDocumentPass(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters, which -short leaves out")
	}
	setpoint := os.Getenv("SETPOINT_BIN")
	if setpoint == "" {
		setpoint = "../../bin/setpoint"
	}
	setpoint, err := filepath.Abs(setpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks(t, "console") {
		command := strings.TrimPrefix(block, "$ ")
		t.Run(command, func(t *testing.T) {
			// The tests of this file are not run again.
			inner := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "go test ", "go test -count=1 -skip Document "))
			inner.Dir = "../.."
			inner.Env = append(inner.Environ(), "PATH="+filepath.Dir(setpoint)+string(os.PathListSeparator)+os.Getenv("PATH"))
			output, err := inner.CombinedOutput()
			if err != nil || !strings.Contains(string(output), "ok  \t") {
				t.Errorf("%s: %v\n%s", command, err, output)
			}
		})
	}
}
