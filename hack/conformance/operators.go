// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/operators"
)

// limitOfPackages is how long the tests of a package of an operator may take. Those of cluster-api's
// slowest take three minutes on two cores that do nothing else.
const limitOfPackages = "-timeout=15m"

// runTwice runs the tests of an operator with each of the two caches. The module of the adapters
// is in a folder. The copy of the operator is in a folder beside it that is the same each time: the
// go command then has in its cache what it has compiled once. With its dot, the folder is no part of
// ./... of our module while it is filled or removed.
func runTwice(ctx context.Context, to io.Writer, o operators.Operator, assets, adapters string, packages []string) (theirs, ours []*count, err error) {
	dir, err := filepath.Abs(filepath.Join(adapters, "..", "bin", ".conformance", o.Name))
	if err != nil {
		return nil, nil, err
	}
	if err := os.RemoveAll(dir); err != nil { // of a run that was killed
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := o.Copy(ctx, dir, adapters); err != nil {
		return nil, nil, err
	}
	if err := o.Change(dir); err != nil {
		return nil, nil, err
	}
	s := suite{name: o.Name, module: o.Module, packages: o.Tests}
	if len(packages) > 0 {
		s.packages = packages
	}
	// Two packages at a time: each starts servers, and tests of cluster-api have deadlines. Packages are not
	// vetted: they are another project's.
	flags := append(operators.Flags(), "-p=2", "-vet=off", limitOfPackages)
	for _, side := range []struct {
		name   string
		counts *[]*count
	}{{"NewCache", &ours}, {"the cache of controller-runtime", &theirs}} {
		fmt.Fprintf(to, "%s with %s\n", o.Name, side.name)
		if *side.counts, err = s.test(ctx, to, dir, assets, flags...); err != nil {
			return nil, nil, fmt.Errorf("with %s: %w", side.name, err)
		}
		if err := o.Restore(dir); err != nil {
			return nil, nil, err
		}
	}
	return theirs, ours, nil
}

// compare prints the lines and the counts of both runs. It reports whether the operator's tests do
// worse with NewCache.
func compare(to io.Writer, o operators.Operator, theirs, ours []*count) (worse bool) {
	fmt.Fprintf(to, "%s: %s\n", o.Name, o.Module)
	for _, l := range o.Lines {
		fmt.Fprintf(to, "  %s: %s → %s\n", l.File, l.Theirs, l.Ours)
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
	path, _, _ := strings.Cut(o.Module, "@")
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
		fmt.Fprintf(to, "  %-50s %-36s %s\n", strings.TrimPrefix(name, path+"/"), pair[0], pair[1])
		for i, side := range []string{"the cache of controller-runtime", "NewCache"} {
			for _, test := range slices.Sorted(slices.Values(pair[i].failures)) {
				fmt.Fprintf(to, "      failed with %s: %s\n", side, test)
			}
		}
		if pair[1].worseThan(pair[0]) {
			worse = true
			fmt.Fprintf(to, "\n--- %s with NewCache\n%s\n", name, pair[1].output.String())
		}
	}
	fmt.Fprintf(to, "  %-50s %-36s %s\n", "all", &all[0], &all[1])
	return worse
}

// worseThan reports whether fewer tests passed than in another run of the package, or one failed that did not fail there. The
// specs of Ginkgo have no names here, so of them only the number counts.
func (c *count) worseThan(other *count) bool {
	return c.passed < other.passed || c.broken && !other.broken ||
		slices.ContainsFunc(c.failures, func(test string) bool { return !slices.Contains(other.failures, test) })
}

// runs returns how many tests there were.
func (c *count) runs() int { return c.passed + c.failed + c.skipped }
