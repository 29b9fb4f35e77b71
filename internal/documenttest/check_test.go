// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// write makes files in a new folder.
func write(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for file, text := range files {
		path := filepath.Join(root, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEachBlockNeedsATestThatReadsDocuments(t *testing.T) {
	const fence = "```\nx\n```\n"
	root := write(t, map[string]string{
		"docs/a.md": fence +
			"<!-- test: cmd TestReads -->\n" + fence +
			"<!-- test: cmd TestReadsByName -->\n" + fence +
			"<!-- test: cmd TestReads/there -->\n" + fence +
			"<!-- test: cmd TestReads/missing -->\n" + fence +
			"<!-- test: other TestDoesNotRead -->\n" + fence +
			"<!-- test: cmd TestMissing -->\n" + fence +
			"<!-- test: cmd -->\n" + fence +
			"<!-- not run: a drawing -->\n" + fence,
		"cmd/a_test.go":            "package cmd\n\nfunc TestReads(t *testing.T) { documenttest.Blocks(t) }\n",
		"cmd/b_test.go":            "package cmd\n\nconst file = \"../docs/a.md\"\n\nfunc TestReadsByName(t *testing.T) {}\n",
		"other/c_test.go":          "package other\n\nfunc TestDoesNotRead(t *testing.T) {}\n",
		"cmd/testdata/there.txtar": "",
		"testdata/ignored.md":      fence,
	})
	found, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/a.md:17: cmd TestReads/missing: there is no script missing.txtar",
		"docs/a.md:21: other TestDoesNotRead: the tests of the package neither use documenttest or scripttest.Documents nor name the document",
		"docs/a.md:1: no test runs or compares this block. Name one that does in the line before it, " +
			"<!-- test: FOLDER TestName -->, or write <!-- not run: REASON -->; go doc ./internal/documenttest",
		"docs/a.md:25: cmd TestMissing: there is no such test",
		"docs/a.md:29: cmd: want the folder of a package and the name of a test in it",
	}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("found\n%q\nwant\n%q", found, want)
	}
}
