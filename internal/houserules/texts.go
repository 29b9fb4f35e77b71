// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrNotACheckout is returned by Files outside a git checkout, such as in the
// archive of a released module.
var ErrNotACheckout = errors.New("not in a git checkout")

// Files lists what a commit of everything in the checkout at root would hold:
// slash-separated, relative to root, sorted, and without testdata folders, whose
// files are bad on purpose.
func Files(ctx context.Context, root string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", root, ErrNotACheckout)
	}
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s with git: %w", root, err)
	}
	var files []string
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if slices.Contains(strings.Split(file, "/"), "testdata") {
			continue
		}
		if info, err := os.Lstat(filepath.Join(root, file)); err != nil || !info.Mode().IsRegular() {
			continue // deleted but not yet committed so, or a link
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

const (
	copyright = "Copyright The Setpoint Authors."
	licence   = "SPDX-License-Identifier: Apache-2.0"
)

// comment is how a source file starts a comment, or empty for other files.
func comment(file string, text []byte) string {
	switch {
	case strings.HasSuffix(file, ".go"):
		return "// "
	case path.Base(file) == "Makefile", strings.HasSuffix(file, ".mk"), bytes.HasPrefix(text, []byte("#!")):
		return "# "
	}
	return ""
}

// eachFile calls f with the content of each file.
func eachFile(root string, files []string, f func(file string, text []byte)) error {
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return fmt.Errorf("reading the files of the repository: %w", err)
		}
		f(file, text)
	}
	return nil
}

// eachLine calls f with each line of a text, and its number.
func eachLine(text []byte, f func(number int, line []byte)) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		f(number, line)
	}
}

// Headers holds that each source file starts with its copyright and licence,
// a script after the line that names its shell.
func Headers(root string, files []string) (found []string, err error) {
	err = eachFile(root, files, func(file string, text []byte) {
		start := comment(file, text)
		if start == "" {
			return
		}
		if bytes.HasPrefix(text, []byte("#!")) {
			_, text, _ = bytes.Cut(text, []byte("\n"))
		}
		if want := start + copyright + "\n" + start + licence + "\n"; !bytes.HasPrefix(text, []byte(want)) {
			found = append(found, fmt.Sprintf("%s:1: does not start with %q and %q", file, start+copyright, start+licence))
		}
	})
	return found, err
}

// unwanted is what no file may say. The patterns are spelled so that they do
// not find themselves.
var unwanted = []struct {
	// A text has none of the pattern without one of the parts, which are found a hundred
	// times as fast. They stand here in pieces: this file is read as well.
	parts   []string
	pattern *regexp.Regexp
	what    string
}{
	{[]string{"/" + "work/", "/" + "root/", "/" + "home/", "/" + "Users/"}, regexp.MustCompile(`(^|[\s"'` + "`" + `=:(,])/(work|root|home/\w+|Users/\w+)/`), "a path of a developer's machine"},
	{[]string{".golang.", ".npmjs.", ".debian."}, regexp.MustCompile(`\b(proxy|sum)\.golang\.[o]rg\b|\bregistry\.npmjs\.[o]rg\b|\bdeb\.debian\.[o]rg\b`), "the host of a package registry"},
}

// Texts holds that files are about the project, not about the place it was written in.
func Texts(root string, files []string) (found []string, err error) {
	err = eachFile(root, files, func(file string, text []byte) {
		for _, unwanted := range unwanted {
			if !slices.ContainsFunc(unwanted.parts, func(part string) bool { return bytes.Contains(text, []byte(part)) }) {
				continue
			}
			eachLine(text, func(number int, line []byte) {
				match := unwanted.pattern.Find(line)
				if match != nil && !bytes.Contains(match, []byte("/home/you/")) { // what documents call the reader's
					found = append(found, fmt.Sprintf("%s:%d: names %s: %s", file, number, unwanted.what, bytes.TrimSpace(match)))
				}
			})
		}
	})
	return found, err
}
