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

// copyOfModule copies testdata/module, whose TestFlaky counts its runs in
// another folder.
func copyOfModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNSURE", t.TempDir())
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	return dir
}

func TestAFlakyTestIsNamedAndDoesNotFailTheRun(t *testing.T) {
	dir := copyOfModule(t)
	report := filepath.Join(t.TempDir(), "flaky.txt")
	var out strings.Builder
	passed, err := run(t.Context(), []string{"retry", "-retries", "3", "-report", report, "--", dir, "-count=1", "-timeout", "5m"}, &out)
	if err != nil || !passed {
		t.Errorf("passed is %v, %v:\n%s", passed, err, out.String())
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nFLAKY example.com/module/unsure TestFlaky\n", "run 0: this one fails", "run 1: this one passes"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report does not have %q:\n%s", want, text)
		}
	}
	if !regexp.MustCompile(`(?m)^ok  \texample.com/module/steady\t`).MatchString(out.String()) ||
		!regexp.MustCompile(`(?m)^FAIL\texample.com/module/unsure\t`).MatchString(out.String()) {
		t.Errorf("the summary lines of go test are not there:\n%s", out.String())
	}
}

func TestAHuntCountsTheFailuresOfWhatChanged(t *testing.T) {
	dir := copyOfModule(t)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "unsure", name), []byte("package unsure\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("new.go")
	t.Chdir(dir)
	logs := t.TempDir()
	var out strings.Builder
	passed, err := run(t.Context(), []string{"hunt", "-base", "HEAD", "-count", "9", "-cpu", "1,2", "-for", "5m", "-out", logs}, &out)
	if err != nil || passed {
		t.Errorf("passed is %v, %v:\n%s", passed, err, out.String())
	}
	for _, want := range []string{
		`(?m)^ +3 +9 +[0-9.]+  unsure TestFlaky$`, // three of nine
		`(?m)^ +0 +9 +[0-9.]+  unsure TestSure$`,
		`(?m)^ +0 +1 +[0-9.]+  unsure TestSkipped\n +it skips itself$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is not in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "steady") {
		t.Errorf("a package ran that has not changed:\n%s", out.String())
	}
	first, err := os.ReadFile(filepath.Join(logs, "unsure.TestFlaky.txt"))
	if err != nil || !strings.Contains(string(first), "run 0: this one fails") {
		t.Errorf("the output of the first failure is not saved, %v: %s", err, first)
	}
}

func TestChangedFilesBelongToTheFolderOfTheirPackage(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"x_test.go", "a/a.go", "a/a_test.go", "a/testdata/b/in.txt", "c/c.go", "docs/x.md"} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ files, want string }{
		{"a/a.go", "a"},
		{"a/a_test.go a/a.go", "a"},
		{"a/testdata/b/in.txt", "a"},
		{"testdata/x.txt", "."},
		{"c/c.go", ""}, // it has no tests
		{"docs/x.md a/readme.txt", ""},
		{"a/gone_test.go x_test.go", ".,a"},
	} {
		if got := strings.Join(testFolders(root, strings.Fields(test.files)), ","); got != test.want {
			t.Errorf("%s belong to %q, want %q", test.files, got, test.want)
		}
	}
}
