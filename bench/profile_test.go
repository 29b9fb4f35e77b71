// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestTheFolderOfProfilesIsMadeBeforeAnythingIsMeasured(t *testing.T) {
	parse := func(folder string) (dir string, err error) {
		flags := flag.NewFlagSet("cache", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		folderFlag(flags, "profile", &dir, "`folder` for profiles")
		return dir, flags.Parse([]string{"--profile", folder})
	}
	want := filepath.Join(t.TempDir(), "profiles", "today")
	got, err := parse(want)
	if err != nil || got != want {
		t.Fatalf("folder %q: %v, want %q", got, err, want)
	}
	if info, err := os.Stat(want); err != nil || !info.IsDir() {
		t.Errorf("the folder was not made: %v", err)
	}
	if got, err := parse(""); err != nil || got != "" {
		t.Errorf("folder %q of an empty name: %v", got, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parse(file); err == nil {
		t.Error("a file was taken for a folder")
	}
}
