// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorded is a stream of go test -json, below testdata/streams.
func recorded(t *testing.T, names ...string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "streams", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// stream is one in which the tests of a package go as told.
func stream(t *testing.T, pkg, result string, tests map[string]string) string {
	t.Helper()
	var all strings.Builder
	add := func(e map[string]string) {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(line, '\n'))
	}
	for name, how := range tests {
		add(map[string]string{"Action": "run", "Package": pkg, "Test": name})
		add(map[string]string{"Action": "output", "Package": pkg, "Test": name, "Output": "--- " + strings.ToUpper(how) + ": " + name + " (0.00s)\n"})
		add(map[string]string{"Action": "output", "Package": pkg, "Test": name, "Output": "    the second run of " + name + "\n"})
		add(map[string]string{"Action": how, "Package": pkg, "Test": name})
	}
	add(map[string]string{"Action": "output", "Package": pkg, "Output": strings.ToUpper(result) + "\n"})
	add(map[string]string{"Action": result, "Package": pkg})
	return all.String()
}

// played is a go test that plays streams: the first by "./...", the others by
// the test that is asked for with -run, or by "rest" where -skip is given.
func played(t *testing.T, streams map[string]string, calls *[]string) func(context.Context, module, []string, func(event)) error {
	return func(_ context.Context, _ module, args []string, handle func(event)) error {
		*calls = append(*calls, strings.Join(args, " "))
		key := args[len(args)-1]
		if i := slices.Index(args, "-run"); i >= 0 {
			key = strings.Trim(args[i+1], "^$")
		} else if slices.Contains(args, "-skip") {
			key = "rest"
		}
		text, ok := streams[key]
		if !ok {
			t.Errorf("go test was called with %q, of which there is no stream", args)
		}
		if err := readEvents(strings.NewReader(text), handle); err != nil {
			return err
		}
		if strings.Contains(text, `"Action":"fail"`) || strings.Contains(text, "cannot find main module") {
			return &exec.ExitError{ProcessState: &os.ProcessState{}}
		}
		return nil
	}
}

func TestWhatIsRunAgainAndWhatFailsTheRun(t *testing.T) {
	const rec = "example.com/rec/"
	pass := func(pkg string, tests ...string) string {
		of := map[string]string{}
		for _, test := range tests {
			of[test] = "pass"
		}
		return stream(t, rec+pkg, "pass", of)
	}
	fail := func(pkg, test string) string {
		return stream(t, rec+pkg, "fail", map[string]string{test: "fail"})
	}
	for _, test := range []struct {
		name    string
		streams map[string]string
		passes  bool
		calls   []string // after the first, what each must end with
		flaky   []string // "package test", in the report
	}{
		{
			"everything passes",
			map[string]string{"./...": recorded(t, "good", "notests")}, true, nil, nil,
		},
		{
			"a subtest and an example: their tests run again",
			map[string]string{
				"./...": recorded(t, "good", "subtests"), "TestBad": pass("subtests", "TestBad"), "Example_bad": pass("subtests", "Example_bad"),
			},
			true,
			[]string{"-count=1 -run ^TestBad$ " + rec + "subtests", "-count=1 -run ^Example_bad$ " + rec + "subtests"},
			[]string{"subtests TestBad", "subtests Example_bad"},
		},
		{
			"one passes the second time, one fails twice",
			map[string]string{
				"./...": recorded(t, "subtests"), "TestBad": pass("subtests", "TestBad"), "Example_bad": fail("subtests", "Example_bad"),
			},
			false,
			[]string{"^TestBad$ " + rec + "subtests", "^Example_bad$ " + rec + "subtests"},
			[]string{"subtests TestBad"},
		},
		{
			"the test passes the second time, its package does not",
			map[string]string{"./...": recorded(t, "race"), "TestRace": stream(t, rec+"race", "fail", map[string]string{"TestRace": "pass"})},
			false,
			[]string{"^TestRace$ " + rec + "race"}, nil,
		},
		{
			"the test is skipped the second time",
			map[string]string{"./...": recorded(t, "race"), "TestRace": stream(t, rec+"race", "pass", map[string]string{"TestRace": "skip"})},
			false,
			[]string{"^TestRace$ " + rec + "race"}, nil,
		},
		{
			"the test does not run the second time",
			map[string]string{"./...": recorded(t, "race"), "TestRace": stream(t, rec+"race", "pass", nil)},
			false,
			[]string{"^TestRace$ " + rec + "race"}, nil,
		},
		{
			"a data race of a test",
			map[string]string{"./...": recorded(t, "race"), "TestRace": pass("race", "TestRace")},
			true,
			[]string{"^TestRace$ " + rec + "race"},
			[]string{"race TestRace"},
		},
		{
			"a data race of no test",
			map[string]string{"./...": recorded(t, "raceafter")}, false, nil, nil,
		},
		{
			"a panic: what it kept from running runs too",
			map[string]string{"./...": recorded(t, "panics"), "TestPanics": pass("panics", "TestPanics"), "rest": pass("panics", "TestAfter")},
			true,
			[]string{"^TestPanics$ " + rec + "panics", "-skip ^(TestBefore|TestPanics)$ " + rec + "panics"},
			[]string{"panics TestPanics"},
		},
		{
			"a panic that hid a failure",
			map[string]string{"./...": recorded(t, "panics"), "TestPanics": pass("panics", "TestPanics"), "rest": fail("panics", "TestAfter")},
			false,
			[]string{"^TestPanics$ " + rec + "panics", "-skip ^(TestBefore|TestPanics)$ " + rec + "panics"},
			[]string{"panics TestPanics"},
		},
		{
			"an exit: the test that was running is to blame, not one that waited",
			map[string]string{"./...": recorded(t, "fatal"), "TestExits": pass("fatal", "TestExits"), "rest": pass("fatal", "TestParallel", "TestAfter")},
			true,
			[]string{"^TestExits$ " + rec + "fatal", "-skip ^(TestBefore|TestExits)$ " + rec + "fatal"},
			[]string{"fatal TestExits"},
		},
		{
			"a timeout",
			map[string]string{"./...": recorded(t, "timeout"), "TestHangs": pass("timeout", "TestHangs"), "rest": pass("timeout", "TestAfter")},
			true,
			[]string{"^TestHangs$ " + rec + "timeout", "-skip ^(TestBefore|TestHangs)$ " + rec + "timeout"},
			[]string{"timeout TestHangs"},
		},
		{
			"a timeout, twice",
			map[string]string{"./...": recorded(t, "timeout"), "TestHangs": recorded(t, "timeout")},
			false,
			[]string{"^TestHangs$ " + rec + "timeout"}, nil,
		},
		{
			"a package that does not build",
			map[string]string{"./...": recorded(t, "nobuild", "good")}, false, nil, nil,
		},
		{
			"a package whose imports are not there",
			map[string]string{"./...": recorded(t, "setup", "good")}, false, nil, nil,
		},
		{
			"a package that does not build, beside a flaky test, which is named nevertheless",
			map[string]string{"./...": recorded(t, "nobuild", "race"), "TestRace": pass("race", "TestRace")},
			false,
			[]string{"^TestRace$ " + rec + "race"},
			[]string{"race TestRace"},
		},
		{
			"a TestMain that fails after its tests",
			map[string]string{"./...": recorded(t, "testmain")}, false, nil, nil,
		},
		{
			"a TestMain that fails before its tests",
			map[string]string{"./...": recorded(t, "testmainearly")}, false, nil, nil,
		},
		{
			"more failures than may run again",
			map[string]string{
				"./...":       recorded(t, "subtests", "race", "panics"),
				"TestBad":     pass("subtests", "TestBad"),
				"Example_bad": pass("subtests", "Example_bad"),
				"TestRace":    pass("race", "TestRace"),
			},
			false,
			[]string{"^TestBad$ " + rec + "subtests", "^Example_bad$ " + rec + "subtests", "^TestRace$ " + rec + "race"},
			[]string{"subtests TestBad", "subtests Example_bad", "race TestRace"},
		},
		{
			"go test ends before a package has",
			map[string]string{"./...": recorded(t, "race") + `{"Action":"start","Package":"example.com/rec/good"}` + "\n", "TestRace": pass("race", "TestRace")},
			false,
			[]string{"^TestRace$ " + rec + "race"},
			[]string{"race TestRace"},
		},
		{
			"go test does not start",
			map[string]string{"./...": "go: cannot find main module\n"}, false, nil, nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls []string
			var out strings.Builder
			report := filepath.Join(t.TempDir(), "flaky.txt")
			if err := os.WriteFile(report, []byte("of the last run"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := retry{out: &out, retries: 3, report: report, goTest: played(t, test.streams, &calls)}
			passed, err := r.run(t.Context(), []module{{folder: ".", flags: []string{"-race", "-timeout", "20m"}}})
			if err != nil || passed != test.passes {
				t.Errorf("passed is %v, %v; want %v", passed, err, test.passes)
			}
			if calls[0] != "-race -timeout 20m ./..." {
				t.Errorf("the first go test is %q", calls[0])
			}
			if len(calls)-1 != len(test.calls) {
				t.Fatalf("go test ran %d times, want %d:\n%s", len(calls), len(test.calls)+1, strings.Join(calls, "\n"))
			}
			for i, want := range test.calls {
				if got := calls[i+1]; !strings.HasPrefix(got, "-race -timeout 20m ") || !strings.HasSuffix(got, want) {
					t.Errorf("go test ran with %q, want the same flags and %q", got, want)
				}
			}
			text, err := os.ReadFile(report)
			if len(test.flaky) == 0 && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a report, %v:\n%s", err, text)
			}
			if got := strings.Count(string(text), "\nFLAKY "); got != len(test.flaky) {
				t.Errorf("%d tests are flaky in the report, want %d:\n%s", got, len(test.flaky), text)
			}
			for _, flaky := range test.flaky {
				name := flaky[strings.Index(flaky, " ")+1:]
				if !strings.Contains(string(text), "\nFLAKY "+rec+flaky+"\n") || !strings.Contains(string(text), "the second run of "+name+"\n") {
					t.Errorf("the report does not have %q with its second run:\n%s", flaky, text)
				}
			}
			if !strings.Contains(out.String(), string(text)) {
				t.Errorf("what is in the report is not printed:\n%s", out.String())
			}
		})
	}
}

func TestNothingRunsAgainWithoutRetries(t *testing.T) {
	var calls []string
	r := retry{out: new(strings.Builder), goTest: played(t, map[string]string{"./...": recorded(t, "subtests")}, &calls)}
	if passed, err := r.run(t.Context(), []module{{folder: "."}}); passed || err != nil || len(calls) != 1 {
		t.Errorf("passed is %v, %v, after %q", passed, err, calls)
	}
}

func TestRetriesAreThoseOfAllModulesTogether(t *testing.T) {
	var calls []string
	var out strings.Builder
	second := stream(t, "example.com/rec/race", "pass", map[string]string{"TestRace": "pass"})
	r := retry{out: &out, retries: 1, goTest: played(t, map[string]string{"./...": recorded(t, "race"), "TestRace": second}, &calls)}
	if passed, err := r.run(t.Context(), []module{{folder: "."}, {folder: "bench"}}); passed || err != nil || len(calls) != 3 {
		t.Errorf("passed is %v, %v, after %q", passed, err, calls)
	}
}

func TestResultsLookLikeThoseOfGoTest(t *testing.T) {
	var calls []string
	var out strings.Builder
	r := retry{out: &out, goTest: played(t, map[string]string{"./...": recorded(t, "good", "notests", "subtests", "nobuild")}, &calls)}
	if _, err := r.run(t.Context(), []module{{folder: "."}}); err != nil {
		t.Fatal(err)
	}
	want := `go test ./..., in .
ok  	example.com/rec/good	0.003s
?   	example.com/rec/notests	[no test files]
--- FAIL: TestBad (0.00s)
    subtests_test.go:5: before
--- FAIL: TestBad/two (0.00s)
    subtests_test.go:7: want 1, got 2
        and a second line
printed by two
--- FAIL: Example_bad (0.00s)
got:
x
want:
y
FAIL
FAIL	example.com/rec/subtests	0.003s
# example.com/rec/nobuild [example.com/rec/nobuild.test]
nobuild/nobuild_test.go:3:28: undefined: undefined
FAIL	example.com/rec/nobuild [build failed]
FAIL
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

func TestVerboseRunsPrintEverything(t *testing.T) {
	var calls []string
	var out strings.Builder
	r := retry{out: &out, goTest: played(t, map[string]string{"./...": recorded(t, "subtests")}, &calls)}
	if _, err := r.run(t.Context(), []module{{folder: ".", flags: []string{"-v"}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"=== RUN   TestGood\n", "--- PASS: TestGood", "printed by a good one\n", "FAIL\texample.com/rec/subtests\t0.003s\n"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%q is not printed once:\n%s", want, out.String())
		}
	}
}

func TestExcerptLeavesOutTheMiddle(t *testing.T) {
	if got := excerpt("1\n2\n3\n4\n5\n6\n", 2); got != "1\n2\n[2 lines are left out here]\n5\n6\n" {
		t.Errorf("got %q", got)
	}
	if got := excerpt("1\n2\n3\n4\n", 2); got != "1\n2\n3\n4\n" {
		t.Errorf("got %q", got)
	}
}

func TestModulesStandBetweenDoubleDashes(t *testing.T) {
	got, err := modulesOf([]string{".", "CGO_ENABLED=1", "-race", "-run=A=B", "./a/...", "./b", "--", "bench", "--", "controlplane", "-v", "-count=1", "--", "x", "A=", "./c"})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range got {
		words = append(words, m.folder+": "+strings.Join(m.env, ",")+" | "+strings.Join(m.everything(), ","))
	}
	if got := strings.Join(words, "; "); got != ".: CGO_ENABLED=1 | -race,-run=A=B,./a/...,./b; bench:  | ./...; controlplane:  | -v,-count=1,./...; x: A= | ./c" {
		t.Errorf("got %q", got)
	}
	for _, bad := range [][]string{nil, {"--"}, {".", "--", "--", "."}} {
		if got, err := modulesOf(bad); err == nil {
			t.Errorf("%q gives %v and no error", bad, got)
		}
	}
}

func TestTheTestsOfModulesTakeTurns(t *testing.T) {
	folders := []string{".", "second", "third"}
	var turn sync.Mutex // held by the module that has its turn
	var out strings.Builder
	r := retry{out: &out, goTest: func(_ context.Context, m module, _ []string, handle func(event)) error {
		if !turn.TryLock() {
			t.Errorf("%s begins while another module has its turn", m.folder)
			return nil
		}
		defer turn.Unlock()
		return readEvents(strings.NewReader(stream(t, "example.com/"+m.folder, "pass", map[string]string{"TestA": "pass"})), handle)
	}}
	rests := 0
	r.between = func() { rests++ }
	passed, err := r.run(t.Context(), []module{{folder: folders[0]}, {folder: folders[1]}, {folder: folders[2]}})
	if err != nil || !passed || rests != len(folders) {
		t.Errorf("passed = %v, %v, with %d rests between; want that all passed:\n%s", passed, err, rests, out.String())
	}
	for _, folder := range folders {
		if !strings.Contains(out.String(), "go test ./..., in "+folder+"\n") {
			t.Errorf("nothing is printed of %s:\n%s", folder, out.String())
		}
	}
}

// A process can fail after its tests, for example in TestMain. What it says then is shown.
func TestAPackageThatFailsWithoutAFailedTestShowsItsLastOutput(t *testing.T) {
	p := newPackageRun("example.com/a")
	if err := readEvents(strings.NewReader(stream(t, "example.com/a", "fail", map[string]string{"TestOne": "pass"})), p.add); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	printPackage(&shown, p)
	if want := "no test failed; the last output, with that of TestOne, is\n--- PASS: TestOne (0.00s)\n    the second run of TestOne\nFAIL\n"; shown.String() != want {
		t.Errorf("it shows %q, want %q", shown.String(), want)
	}
}
