// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// importOf is how a changed file imports the adapters.
const importOf = "import (\n\tsetpoint \"" + setpoint + "/adapters/controllerruntime\"\n"

// makers are what makes a cache: the cache of controller-runtime, or a manager, which makes one.
var makers = regexp.MustCompile(`\b(\w*cache\.New|manager\.New|ctrl\.NewManager)\(`)

// Change changes the lines of an operator in a folder that [Operator.Copy] has filled. Each must be
// there once. It fails if a file without a changed line makes a cache or a manager.
func (o Operator) Change(dir string) error {
	if err := Edit(dir, o.Lines); err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, l := range o.Lines {
		if changed[l.File] {
			continue
		}
		changed[l.File] = true
		if err := replace(dir, Line{l.File, "import (\n", importOf}); err != nil {
			return err
		}
	}
	return o.others(dir, changed)
}

// Edit changes lines of files below a folder, each of which must be there once.
func Edit(dir string, lines []Line) error {
	for _, l := range lines {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(l.File)))
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), l.Theirs); n != 1 {
			return fmt.Errorf("%s has %q %d times, want once: another version of the module?", l.File, l.Theirs, n)
		}
		if err := replace(dir, l); err != nil {
			return err
		}
	}
	return nil
}

// replace changes a line where it is first.
func replace(dir string, l Line) error {
	path := filepath.Join(dir, filepath.FromSlash(l.File))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), l.Theirs, l.Ours, 1)), 0o600) //nolint:gosec // as above
}

// others fails if a file that was not changed makes a cache.
func (o Operator) others(dir string, changed map[string]bool) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if changed[name] || notMade[o.Name+"/"+name] != "" {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // as above
		if err != nil {
			return err
		}
		if found := makers.Find(text); found != nil {
			return fmt.Errorf("%s has %q, and no line of it is in the list: its cache would be controller-runtime's", name, found)
		}
		if strings.Contains(string(text), "NewInformer:") && o.keepsInformers() {
			return fmt.Errorf("%s sets NewInformer, with which NewCache has no effect: the line needs IgnoreNewInformer", name)
		}
		return nil
	})
}

// keepsInformers reports whether a line leaves a manager the informers of the program.
func (o Operator) keepsInformers() bool {
	return slices.ContainsFunc(o.Lines, func(l Line) bool { return strings.Contains(l.Ours, plain) })
}

// notMade are files that make no cache that an operator or a test of the list reads, with the reasons.
var notMade = map[string]string{
	"cluster-api/util/controller/builder_test.go": "its manager reads nothing: it has no server",
}

// Restore has the lines as they are in the module.
func (o Operator) Restore(dir string) error {
	for _, l := range o.Lines {
		for _, back := range []Line{{l.File, l.Ours, l.Theirs}, {l.File, importOf, "import (\n"}} {
			if err := replace(dir, back); err != nil {
				return err
			}
		}
	}
	return nil
}
