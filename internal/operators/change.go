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
	changed := map[string]bool{}
	for _, l := range o.Lines {
		path := filepath.Join(dir, filepath.FromSlash(l.File))
		text, err := os.ReadFile(path) //nolint:gosec // below a folder of the caller's
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), l.Theirs); n != 1 {
			return fmt.Errorf("%s has %q %d times, want once: another version of the module?", l.File, l.Theirs, n)
		}
		now := strings.Replace(string(text), l.Theirs, l.Ours, 1)
		if !changed[l.File] {
			now = strings.Replace(now, "import (\n", importOf, 1)
		}
		changed[l.File] = true
		if err := os.WriteFile(path, []byte(now), 0o600); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return o.others(dir, changed)
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
		path := filepath.Join(dir, filepath.FromSlash(l.File))
		text, err := os.ReadFile(path) //nolint:gosec // below a folder of the caller's
		if err != nil {
			return err
		}
		before := strings.Replace(strings.Replace(string(text), l.Ours, l.Theirs, 1), importOf, "import (\n", 1)
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}
