// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// suspect is a test that failed once, and is run again alone.
type suspect struct {
	module module
	in     *packageRun
	test   string
	second *packageRun // nil until it ran again
}

// passed is whether the second run passed: the test ran, and nothing in its
// package failed beside it.
func (s *suspect) passed() bool {
	return s.second != nil && s.second.result == "pass" && s.second.byName[s.test] != nil && s.second.byName[s.test].result == "pass"
}

// plan sorts the failures of a run: tests to run again, and packages whose
// failure no test is responsible for, which fail the run.
func plan(m module, packages []*packageRun) (suspects []*suspect, failed []*packageRun) {
	for _, p := range packages {
		if p.result != "fail" {
			continue
		}
		culprits := p.culprits()
		// A race that the package was left with is not that of a test, and would be
		// passed over if only a test that failed beside it ran again.
		if p.failedBuild || len(culprits) == 0 || strings.Contains(p.output.String(), "WARNING: DATA RACE") {
			failed = append(failed, p)
			continue
		}
		for _, test := range culprits {
			suspects = append(suspects, &suspect{module: m, in: p, test: test})
		}
	}
	return suspects, failed
}

// alone are the arguments of go test that run the suspect and nothing else. Of
// a flag that is given twice, the last counts.
func (s *suspect) alone() []string {
	return append(slices.Clone(s.module.flags), "-count=1", "-run", "^"+regexp.QuoteMeta(s.test)+"$", s.in.name)
}

// rest are the arguments of go test that run the tests of a package that died
// which have not passed, or nil if the package had run all its tests.
func rest(p *packageRun, flags []string, retried []string) []string {
	if !p.died() {
		return nil
	}
	done := append(p.names(func(t *testRun) bool { return t.result == "pass" || t.result == "skip" }), retried...)
	args := append(slices.Clone(flags), "-count=1")
	// A -skip of the caller's own is left alone: all that it leaves runs again.
	if !slices.ContainsFunc(flags, func(flag string) bool {
		return strings.HasPrefix(strings.TrimLeft(flag, "-"), "skip") || strings.HasPrefix(strings.TrimLeft(flag, "-"), "test.skip")
	}) {
		for i, name := range done {
			done[i] = regexp.QuoteMeta(name)
		}
		args = append(args, "-skip", "^("+strings.Join(done, "|")+")$")
	}
	return append(args, p.name)
}
