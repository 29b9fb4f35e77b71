// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestTestsAndSpecsAreCounted(t *testing.T) {
	t.Parallel()
	counts, err := read(strings.NewReader(`
{"Action":"output","Package":"a","Test":"TestSpecs","Output":"\u001b[1mFAIL!\u001b[0m -- \u001b[32m38 Passed\u001b[0m | \u001b[31m3 Failed\u001b[0m | 2 Pending | 1 Skipped\n"}
{"Action":"fail","Package":"a","Test":"TestSpecs"}
{"Action":"fail","Package":"a"}
{"Action":"pass","Package":"b","Test":"TestOne/part"}
{"Action":"pass","Package":"b","Test":"TestOne"}
{"Action":"skip","Package":"b","Test":"TestTwo"}
{"Action":"pass","Package":"b"}
{"ImportPath":"c [c.test]","Action":"build-output","Output":"c.go:1: no\n"}
{"ImportPath":"c [c.test]","Action":"build-fail"}
{"Action":"fail","Package":"c"}
{"Action":"skip","Package":"d"}
`), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if !show(&out, suite{name: "some", module: "m@v1"}, counts) {
		t.Error("nothing failed")
	}
	const want = `some: m@v1
  a                                                                        38 passed   3 failed   3 skipped
  b                                                                         1 passed   0 failed   1 skipped
  c                                                                         0 passed   0 failed   0 skipped, and the package failed
  all                                                                      39 passed   3 failed   4 skipped

--- a
FAIL! -- 38 Passed | 3 Failed | 2 Pending | 1 Skipped

--- c
c.go:1: no
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestOutputThatIsNoneOfGoTestIsAnError(t *testing.T) {
	t.Parallel()
	output := strings.NewReader("go: no such module\n" + strings.Repeat("x\n", 100_000))
	if _, err := read(output, io.Discard); err == nil {
		t.Error("no error")
	}
	if output.Len() > 0 {
		t.Errorf("%d bytes are not read: go test waits for a reader", output.Len())
	}
}

func TestSuitesAreChosenByName(t *testing.T) {
	t.Parallel()
	nameOf := func(s suite) string { return s.name }
	if all, err := choose(suites, nil, nameOf); err != nil || len(all) != len(suites) {
		t.Errorf("without names: %v, %v", all, err)
	}
	if one, err := choose(suites, []string{"envtest"}, nameOf); err != nil || len(one) != 1 || one[0].name != "envtest" {
		t.Errorf("envtest: %v, %v", one, err)
	}
	if _, err := choose(suites, []string{"nonsense"}, nameOf); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("nonsense: %v", err)
	}
}

func TestProcessesThatTestsLeaveBehindAreEnded(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc here")
	}
	const mark = "CONFORMANCE_TEST_OF_LEFTOVERS=1"
	left, other := exec.CommandContext(t.Context(), "cat"), exec.CommandContext(t.Context(), "cat")
	left.Env = append(left.Environ(), mark)
	other.Env = append(other.Environ(), mark+"0")
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{left, other} {
		if cmd == left {
			if _, err := cmd.StdinPipe(); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	endMarked(mark)
	if err := left.Wait(); err == nil || left.ProcessState.Success() {
		t.Error("the process with the mark ended by itself")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("the process without the mark: %v", err)
	}
}
