// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
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

func TestAProfileIsWrittenIntoItsFolderWhereOneIsWanted(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		folder string
		want   int
	}{{"", 0}, {dir, 1}} {
		calls := 0
		if err := profiled(c.folder, func() error { calls++; return nil }); err != nil || calls != 1 {
			t.Errorf("folder %q: %d calls, %v; want one call", c.folder, calls, err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.pb.gz"))
		if err != nil || len(files) != c.want {
			t.Errorf("folder %q: files %q, %v; want %d", c.folder, files, err, c.want)
		}
	}
	failed := errors.New("the case failed")
	if err := profiled(dir, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v, want that of the case", err)
	}
}
