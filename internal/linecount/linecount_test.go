// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package linecount_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/linecount"
)

func TestLinesWithCodeCount(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"nothing":                    {"", 0},
		"a comment":                  {"// Package a is.\n", 0},
		"a comment of several lines": {"/* a\nb\nc */\n", 0},
		"code with a comment":        {"package a // is\n", 1},
		"code after a comment":       {"/* a\nb */ package a\n", 1},
		"empty lines":                {"package a\n\n\nvar b = 1\n", 2},
		"two statements":             {"package a; var b = 1; var c = 2\n", 1},
		"a brace":                    {"package a\nfunc b() {\n}\n", 3},
		"a raw string":               {"package a\nvar b = `1\n\n3`; var c = 1\n", 4},
	} {
		t.Run(name, func(t *testing.T) {
			if n, err := linecount.Text([]byte(test.text)); err != nil || n != test.want {
				t.Errorf("%q has %d lines (%v), want %d", test.text, n, err, test.want)
			}
		})
	}
}

func TestWhatIsNoGoIsRefused(t *testing.T) {
	if n, err := linecount.Text([]byte("package a\nvar b = \"1\n")); err == nil {
		t.Errorf("a string without an end has %d lines, want an error", n)
	}
	if n, err := linecount.Folder(t.TempDir()); err == nil {
		t.Errorf("an empty folder has %d lines, want an error", n)
	}
}

// TestExamplesSayHowLongTheyAre compares the numbers in the text of each example, and in
// the table of the tutorial, with those that are counted. An example without peers has none.
func TestExamplesSayHowLongTheyAre(t *testing.T) {
	const root = "../.."
	if _, err := os.Stat(filepath.Join(root, "bench")); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the other programs are only in a checkout of the repository")
	}
	tutorial := read(t, filepath.Join(root, "docs", "tutorial.md"))
	folders, err := filepath.Glob(filepath.Join(root, "examples", "*", "doc.go"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	compared := 0
	for _, doc := range folders {
		name := filepath.Base(filepath.Dir(doc))
		if _, err := os.Stat(filepath.Join(root, "bench", "peers", "clientgo", name)); errors.Is(err, fs.ErrNotExist) {
			if strings.Contains(read(t, doc), "lines of code") {
				t.Errorf("%s compares its length with that of programs that are not there", doc)
			}
			continue
		}
		compared++
		count := func(dir ...string) int {
			n, err := linecount.Folder(filepath.Join(append([]string{root}, dir...)...))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		ours := count("examples", name)
		clientGo, runtime := count("bench", "peers", "clientgo", name), count("bench", "peers", "controllerruntime", name)
		// A comment is wrapped anywhere.
		words := strings.Join(strings.Fields(strings.ReplaceAll(read(t, doc), "\n//", "\n")), " ")
		say := fmt.Sprintf("It has %d lines of code, where the same program has %d on client-go and %d on controller-runtime.", ours, clientGo, runtime)
		if !strings.Contains(words, say) {
			t.Errorf("%s does not say %q", doc, say)
		}
		row := fmt.Sprintf("| [%s](../examples/%s) | %d | %d | %d |", name, name, ours, clientGo, runtime)
		if !strings.Contains(tutorial, row) {
			t.Errorf("docs/tutorial.md has no row that starts with %q", row)
		}
	}
	if compared == 0 {
		t.Error("no example was compared")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
