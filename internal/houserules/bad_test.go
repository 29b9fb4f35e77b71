// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/houserules"
)

// bad is a module that breaks every rule.
const bad = "testdata/bad"

func loadBad(t *testing.T) *houserules.Tree {
	t.Helper()
	tree, err := houserules.Load(t.Context(), bad)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func badFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	if err := fs.WalkDir(os.DirFS(bad), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.HasPrefix(path, "fake/") {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// wanted reads what each rule is to find: "# rule", then its sentences.
func wanted(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/bad.golden")
	if err != nil {
		t.Fatal(err)
	}
	want, rule := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, isRule := strings.CutPrefix(line, "# "); isRule {
			rule = name
		} else if line != "" {
			want[rule] = append(want[rule], line)
		}
	}
	return want
}

func TestEachRuleCanFail(t *testing.T) {
	tree, files := loadBad(t), badFiles(t)
	rows, err := houserules.Table(bad)
	if err != nil {
		t.Fatal(err)
	}
	want := wanted(t)
	rules := map[string]func() ([]string, error){
		"Layers":        func() ([]string, error) { return houserules.Layers(tree, rows), nil },
		"TestOnly":      func() ([]string, error) { return houserules.TestOnly(tree), nil },
		"Examples":      func() ([]string, error) { return houserules.Examples(tree), nil },
		"Peers":         func() ([]string, error) { return houserules.Peers(tree), nil },
		"Connections":   func() ([]string, error) { return houserules.Connections(tree) },
		"Process":       func() ([]string, error) { return houserules.Process(tree) },
		"Module":        func() ([]string, error) { return houserules.Module(t.Context(), bad) },
		"Dependencies":  func() ([]string, error) { return houserules.Dependencies(t.Context(), bad, ".") },
		"Documentation": func() ([]string, error) { return houserules.Documentation(bad, files) },
		"Headers":       func() ([]string, error) { return houserules.Headers(bad, files) },
		"Texts":         func() ([]string, error) { return houserules.Texts(bad, files) },
		"Workspaces":    func() ([]string, error) { return houserules.Workspaces(t.Context(), bad, files) },
	}
	for rule, check := range rules {
		t.Run(rule, func(t *testing.T) {
			found, err := check()
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 || !slices.Equal(found, want[rule]) {
				t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(found, "\n\t"), strings.Join(want[rule], "\n\t"))
			}
		})
	}
}

func TestRowsOfNoTableAreFound(t *testing.T) {
	dir := t.TempDir()
	text := "| a | b |\n|---|:-:|\n| 1 | 2 |\n\n| 3 | 4 |\n| 5 | 6 |\n\n```\n| as it is |\n```\n"
	if err := os.WriteFile(filepath.Join(dir, "notes.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := houserules.Tables(dir, []string{"notes.md"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "notes.md:5: a row of no table; is there an empty line before it?"; !slices.Equal(found, []string{want}) {
		t.Errorf("found %q, want %q alone", found, want)
	}
}

func TestRegistryHostsAreFound(t *testing.T) {
	dir := t.TempDir()
	host := "proxy" + ".golang" + ".org" // in pieces: this file is read as well
	if err := os.WriteFile(filepath.Join(dir, "notes.md"), []byte("Modules come\nfrom https://"+host+".\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := houserules.Texts(dir, []string{"notes.md"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "notes.md:2: names the host of a package registry: " + host; !slices.Equal(found, []string{want}) {
		t.Errorf("found %q, want %q alone", found, want)
	}
}

func TestPhrasesThatNoSentenceHasAreFound(t *testing.T) {
	dir := t.TempDir()
	text := "# Who may read\n\nWho " + "reads it pays. It is made for " + "who asks; it says who changed it.\n" + "Who" + "ever writes waits.\n" +
		"Any" + "body may read.\nIt lets go " + "of the lease.\nA kind is served no " + "more.\nThe body is read.\n"
	for _, name := range []string{"notes.md", "notes_test.go", "CHANGELOG.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, lines := range map[string][]int{"notes.md": {3, 4, 5, 6, 7}, "notes_test.go": {3, 4}, "CHANGELOG.md": nil} {
		found, err := houserules.Words(dir, []string{file})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, line := range found {
			number, err := strconv.Atoi(strings.Split(line, ":")[1])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, number)
		}
		if !slices.Equal(got, lines) {
			t.Errorf("%s: found %q, want lines %d", file, found, lines)
		}
	}
}

func TestProgramsAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string][]byte{"small": {'a', 0}, "large": make([]byte, 2<<20), "fine": []byte("text")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := houserules.Binaries(dir, []string{"fine", "large", "small"})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || !strings.HasPrefix(found[0], "large: ") || !strings.HasPrefix(found[1], "small: ") {
		t.Errorf("found %q, want the large one and the small one", found)
	}
}

// Pictures of the page are the only binary files: PNG, small, and in their folder.
func TestPicturesAreSmallAndInTheirFolder(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n\x00"
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "docs/pictures"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"docs/pictures/fine.png":    png,
		"docs/pictures/large.png":   png + strings.Repeat("x", 300<<10),
		"docs/pictures/program.png": "\x7fELF\x00",
		"docs/pictures/tool":        png,
		"elsewhere.png":             png,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := houserules.Binaries(dir, slices.Sorted(maps.Keys(files)))
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, line := range found {
		file, _, _ := strings.Cut(line, ":")
		refused = append(refused, file)
	}
	if want := []string{"docs/pictures/large.png", "docs/pictures/program.png", "docs/pictures/tool", "elsewhere.png"}; !slices.Equal(refused, want) {
		t.Errorf("refused are %q, want %q", found, want)
	}
}

func TestUnreadableTablesAreRefused(t *testing.T) {
	const head = "| package | what lives there | may import, of ours |\n|---|---|---|\n"
	for name, text := range map[string]string{
		"no table":                 "# Architecture\n",
		"imports that say nothing": head + "| `cache` | objects | the client |\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "ARCHITECTURE.md"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if rows, err := houserules.Table(dir); err == nil {
				t.Errorf("Table = %v, want an error", rows)
			}
		})
	}
}
