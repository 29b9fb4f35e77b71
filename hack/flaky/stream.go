// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of go test -json, as "go doc test2json" has it.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// readEvents calls handle for each event in r. A line that is no event, which
// the go command prints for instance when it downloads a module, is an output
// of no package.
func readEvents(r io.Reader, handle func(event)) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)}
			}
			handle(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the output of go test: %w", err)
		}
	}
}

// testRun is what became of one test or subtest.
type testRun struct {
	name    string
	result  string // "pass", "fail", "skip", or empty while there is none
	paused  bool   // waits for the tests before it, in t.Parallel
	elapsed float64
	output  strings.Builder
}

// top is whether the test is no subtest.
func (t *testRun) top() bool { return !strings.Contains(t.name, "/") }

// packageRun is what became of the tests of one package.
type packageRun struct {
	name        string
	result      string // as that of testRun
	failedBuild bool
	tests       []*testRun // in the order in which they started
	output      strings.Builder
	latest      []string // the last outputs of tests
	byName      map[string]*testRun
}

// shownLatest is how many of the last outputs of tests are kept.
const shownLatest = 40

func newPackageRun(name string) *packageRun {
	return &packageRun{name: name, byName: map[string]*testRun{}}
}

func (p *packageRun) add(e event) {
	if e.Test == "" {
		switch e.Action {
		case "output":
			p.output.WriteString(e.Output)
		case "pass", "fail", "skip":
			p.result = e.Action
			p.failedBuild = e.FailedBuild != ""
		}
		return
	}
	t := p.byName[e.Test]
	if t == nil {
		t = &testRun{name: e.Test}
		p.byName[e.Test] = t
		p.tests = append(p.tests, t)
	}
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
		p.latest = append(p.latest[max(0, len(p.latest)+1-shownLatest):], e.Output)
	case "pause":
		t.paused = true
	case "cont":
		t.paused = false
	case "run":
		t.result = "" // once more, by -count or -cpu
	case "pass", "fail", "skip":
		t.elapsed = e.Elapsed
		if t.result != "fail" {
			t.result = e.Action
		}
	}
}

// died is whether the process ended before its tests had: a panic, a timeout
// or os.Exit. The testing package says PASS or FAIL when it is through.
func (p *packageRun) died() bool {
	return p.result == "fail" && !p.failedBuild &&
		!slices.ContainsFunc(strings.Split(p.output.String(), "\n"), func(line string) bool { return line == "FAIL" || line == "PASS" })
}

// culprits are the names of the tests that the failure of the package is
// blamed on: those that failed, or, when the process died and none had, those
// that were running.
func (p *packageRun) culprits() []string {
	if p.result != "fail" {
		return nil
	}
	names := p.names(func(t *testRun) bool { return t.result == "fail" })
	if len(names) == 0 && p.died() {
		names = p.names(func(t *testRun) bool { return t.result == "" && !t.paused })
	}
	return names
}

// names are those of the tests, without subtests, that match.
func (p *packageRun) names(match func(*testRun) bool) []string {
	var names []string
	for _, t := range p.tests {
		if t.top() && match(t) {
			names = append(names, t.name)
		}
	}
	return names
}
