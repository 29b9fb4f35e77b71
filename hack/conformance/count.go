// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// count is what became of the tests of a package.
type count struct {
	name                    string // import path
	passed, failed, skipped int
	specs                   bool     // of Ginkgo
	broken                  bool     // the package failed, whatever its tests did
	failures                []string // tests of Go, parts of tests too
	output                  strings.Builder
}

// event is a line of "go test -json". Source: go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// read reads the events of all packages, in the order in which they began, and writes a line for each that
// has ended to progress. It reads to the end also after an error: go test waits until its output is read.
func read(from io.Reader, progress io.Writer) (counts []*count, err error) {
	byName := map[string]*count{}
	of := func(name string) *count {
		// A package that does not compile is named with its test in brackets.
		name, _, _ = strings.Cut(name, " ")
		if byName[name] == nil {
			byName[name] = &count{name: name}
			counts = append(counts, byName[name])
		}
		return byName[name]
	}
	for d := json.NewDecoder(from); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return counts, nil
		} else if err != nil {
			_, _ = io.Copy(io.Discard, from) // the first error says what is wrong
			return counts, fmt.Errorf("reading the output of go test: %w", err)
		}
		c := of(e.Package + e.ImportPath)
		c.add(e)
		if e.Test == "" && (e.Action == "pass" || e.Action == "fail") {
			fmt.Fprintf(progress, "  %-70s %s in %.0f s\n", c.name, c, e.Elapsed)
		}
	}
}

// summary is the last line of a suite of Ginkgo; colors are what escapes switch.
var (
	summary = regexp.MustCompile(`(\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped`)
	colors  = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

func (c *count) add(e event) {
	if e.Output != "" {
		line := colors.ReplaceAllString(e.Output, "")
		c.output.WriteString(line)
		if m := summary.FindStringSubmatch(line); m != nil {
			c.addSpecs(m)
		}
	}
	if e.Test != "" && e.Action == "fail" {
		c.failures = append(c.failures, e.Test)
	}
	switch {
	case e.Test == "" && (e.Action == "fail" || e.Action == "build-fail"):
		c.broken = true
	case e.Test == "" || strings.Contains(e.Test, "/") || c.specs:
	case e.Action == "pass":
		c.passed++
	case e.Action == "fail":
		c.failed++
	case e.Action == "skip":
		c.skipped++
	}
}

// addSpecs counts the specs of a suite, which is itself one test of Go, instead of tests.
func (c *count) addSpecs(m []string) {
	if !c.specs {
		c.specs, c.passed, c.failed, c.skipped = true, 0, 0, 0
	}
	for i, into := range []*int{&c.passed, &c.failed, &c.skipped, &c.skipped} {
		n, _ := strconv.Atoi(m[i+1]) // digits, see summary
		*into += n
	}
}

// show prints the counts, and what go test printed about packages that failed. It reports
// whether there are any.
func show(to io.Writer, s suite, counts []*count) (failed bool) {
	fmt.Fprintf(to, "%s: %s\n", s.name, s.module)
	var all count
	for _, c := range counts {
		all.passed, all.failed, all.skipped = all.passed+c.passed, all.failed+c.failed, all.skipped+c.skipped
		if c.runs() == 0 && !c.broken {
			continue // no tests
		}
		fmt.Fprintf(to, "  %-70s %s\n", c.name, c)
		failed = failed || c.broken
	}
	fmt.Fprintf(to, "  %-70s %s\n", "all", &all)
	for _, c := range counts {
		if c.broken {
			fmt.Fprintf(to, "\n--- %s\n%s", c.name, c.output.String())
		}
	}
	return failed
}

func (c *count) String() string {
	text := fmt.Sprintf("%4d passed %3d failed %3d skipped", c.passed, c.failed, c.skipped)
	if c.broken && c.failed == 0 {
		text += ", and the package failed"
	}
	return text
}
