// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// setpoint is the path of the module that has the module of the adapters in a folder.
const setpoint = "github.com/setpoint-io/setpoint"

// flagsOfOperators are flags of go test. Tests of cluster-api find their files by the path that the
// compiler has seen, which -trimpath in GOFLAGS would cut. Their binaries are large, and need no tables
// for debuggers.
var flagsOfOperators = []string{"-mod=mod", "-trimpath=false", "-ldflags=-w"}

// runTwice runs the tests of an operator with each of the two caches. The module of the adapters
// is in a folder.
func (o operator) runTwice(ctx context.Context, assets, adapters string) (theirs, ours []*count, err error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := o.prepare(ctx, dir, adapters); err != nil {
		return nil, nil, err
	}
	before, err := change(dir, o.lines)
	if err != nil {
		return nil, nil, err
	}
	// The first run chooses the versions of the modules that both runs have.
	if ours, err = o.test(ctx, dir, assets, flagsOfOperators...); err != nil {
		return nil, nil, fmt.Errorf("with NewCache: %w", err)
	}
	for file, text := range before {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, nil, err
		}
	}
	if theirs, err = o.test(ctx, dir, assets, flagsOfOperators...); err != nil {
		return nil, nil, fmt.Errorf("with the cache of controller-runtime: %w", err)
	}
	return theirs, ours, nil
}

// prepare copies the modules, and has them find the adapters.
func (o operator) prepare(ctx context.Context, dir, adapters string) error {
	if err := copyModule(ctx, o.module, dir); err != nil {
		return err
	}
	for folder, module := range o.nested {
		if err := copyModule(ctx, module, filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	adapters, err := filepath.Abs(adapters)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "edit",
		"-require="+setpoint+"@v0.0.0", "-replace="+setpoint+"="+filepath.Dir(adapters),
		"-require="+setpoint+"/adapters@v0.0.0", "-replace="+setpoint+"/adapters="+adapters)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod edit: %w\n%s", err, out)
	}
	return nil
}

// change changes lines of files below a directory, each of which must be there once, and returns
// the files as they were.
func change(dir string, lines []line) (before map[string]string, err error) {
	before = map[string]string{}
	for _, l := range lines {
		path := filepath.Join(dir, l.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if n := strings.Count(string(text), l.theirs); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times, want once: another version of the module?", l.file, l.theirs, n)
		}
		before[l.file] = string(text)
		changed := strings.Replace(string(text), l.theirs, l.ours, 1)
		changed = strings.Replace(changed, "import (\n", "import (\n\tsetpoint \""+setpoint+"/adapters/controllerruntime\"\n", 1)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil { //nolint:gosec // below a directory that this process has made
			return nil, err
		}
	}
	return before, nil
}

// compare prints the lines and the counts of both runs. It reports whether the operator's tests do
// worse with NewCache.
func compare(to *os.File, o operator, theirs, ours []*count) (worse bool) {
	fmt.Fprintf(to, "%s: %s\n", o.name, o.module)
	for _, l := range o.lines {
		fmt.Fprintf(to, "  %s: %s → %s\n", l.file, l.theirs, l.ours)
	}
	fmt.Fprintf(to, "  %-50s %-36s %s\n", "", "cache of controller-runtime", "NewCache")
	sides := map[string][2]*count{}
	for i, side := range [][]*count{theirs, ours} {
		for _, c := range side {
			pair := sides[c.name]
			pair[i] = c
			sides[c.name] = pair
		}
	}
	var all [2]count
	for _, name := range slices.Sorted(maps.Keys(sides)) {
		pair := sides[name]
		for i := range pair {
			if pair[i] == nil {
				pair[i] = new(count)
			}
			all[i].passed += pair[i].passed
			all[i].failed += pair[i].failed
			all[i].skipped += pair[i].skipped
		}
		if pair[0].runs()+pair[1].runs() == 0 && !pair[1].broken {
			continue // no tests
		}
		fmt.Fprintf(to, "  %-50s %-36s %s\n", strings.TrimPrefix(name, o.path()+"/"), pair[0], pair[1])
		if pair[1].passed < pair[0].passed || pair[1].broken && !pair[0].broken {
			worse = true
			fmt.Fprintf(to, "\n--- %s with NewCache\n%s\n", name, pair[1].output.String())
		}
	}
	fmt.Fprintf(to, "  %-50s %-36s %s\n", "all", &all[0], &all[1])
	return worse
}

// path returns the path of the module.
func (s suite) path() string {
	path, _, _ := strings.Cut(s.module, "@")
	return path
}

// runs returns how many tests there were.
func (c *count) runs() int { return c.passed + c.failed + c.skipped }
