// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// hunt runs tests many times.
type hunt struct {
	out     io.Writer
	log     string // folder of the test binaries and of the first failures
	count   int    // runs of each test
	procs   []int  // values of GOMAXPROCS that they are spread over
	within  time.Duration
	timeout time.Duration // of one process
	race    bool
	matches *regexp.Regexp
}

// target is a test, and what became of it.
type target struct {
	folder, binary, name string
	runs, failures       int
	took                 time.Duration
	skipped              bool   // by itself, as it would be each time
	firstFailure         string // file
}

func runHunt(ctx context.Context, args []string, out io.Writer) (bool, error) {
	flags := flag.NewFlagSet("hunt", flag.ContinueOnError)
	h := hunt{out: out}
	from := flags.String("base", "", "`commit` from which changes count; without it the merge base with origin/main, or the commit before HEAD")
	flags.IntVar(&h.count, "count", 100, "how often each test runs")
	flags.DurationVar(&h.within, "for", 10*time.Minute, "how long all of it may take")
	flags.DurationVar(&h.timeout, "timeout", 5*time.Minute, "how long a test may hang until that is a failure")
	cpu := flags.String("cpu", "1,2,8", "values of GOMAXPROCS to run with")
	match := flags.String("run", ".", "`regexp` of the tests to run")
	flags.BoolVar(&h.race, "race", false, "use the race detector")
	flags.StringVar(&h.log, "out", "bin/flaky", "`folder` for the test binaries and the outputs of failures")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	var err error
	if h.matches, err = regexp.Compile(*match); err != nil {
		return false, fmt.Errorf("-run: %w", err)
	}
	for part := range strings.SplitSeq(*cpu, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return false, fmt.Errorf("-cpu=%s: want numbers such as 1,2,8", *cpu)
		}
		h.procs = append(h.procs, n)
	}
	if h.count < 1 {
		return false, fmt.Errorf("-count=%d: want at least one run", h.count)
	}
	if h.log, err = filepath.Abs(h.log); err != nil {
		return false, fmt.Errorf("-out: %w", err)
	}
	root, err := checkout(ctx)
	if err != nil {
		return false, err
	}
	if *from == "" {
		if *from, err = base(ctx, root); err != nil {
			return false, err
		}
	}
	files, err := changedFiles(ctx, root, *from)
	if err != nil {
		return false, err
	}
	folders := testFolders(root, files)
	fmt.Fprintf(out, "%d files differ from %s, in %d folders with tests\n", len(files), *from, len(folders))
	return h.run(ctx, root, folders)
}

// run returns whether no test has failed.
func (h *hunt) run(ctx context.Context, root string, folders []string) (bool, error) {
	if err := os.MkdirAll(h.log, 0o755); err != nil { //nolint:gosec // logs are for all users that may read the checkout
		return false, fmt.Errorf("making a folder for the logs: %w", err)
	}
	var targets []*target
	for _, folder := range folders {
		found, err := h.compile(ctx, root, folder)
		if err != nil {
			return false, err
		}
		targets = append(targets, found...)
	}
	if len(targets) == 0 {
		fmt.Fprintln(h.out, "there is no test to run")
		return true, nil
	}
	fmt.Fprintf(h.out, "running %d tests %d times with GOMAXPROCS of %v, beside %d busy goroutines, for %s at most\n",
		len(targets), h.count, h.procs, runtime.NumCPU(), h.within)
	stop := load(runtime.NumCPU())
	err := h.rounds(ctx, targets)
	stop()
	if err != nil {
		return false, err
	}
	return h.report(targets), nil
}

// compile builds the test binary of a folder and lists its tests.
func (h *hunt) compile(ctx context.Context, root, folder string) ([]*target, error) {
	dir := filepath.Join(root, folder)
	binary := filepath.Join(h.log, strings.NewReplacer("/", "-", "\\", "-").Replace(folder)+".test")
	args := []string{"test", "-c", "-o", binary}
	if h.race {
		args = append(args, "-race")
	}
	fmt.Fprintf(h.out, "compiling the tests of %s\n", folder)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the tests of %s: %w\n%s", folder, err, out)
	}
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		return nil, nil // there are no tests on this system
	}
	list := exec.CommandContext(ctx, binary, "-test.list", ".")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w\n%s", folder, err, out)
	}
	var found []*target
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(name, "Benchmark") && h.matches.MatchString(name) {
			found = append(found, &target{folder: dir, binary: binary, name: name})
		}
	}
	return found, nil
}

// load keeps n goroutines busy until stop is called.
func load(n int) (stop func()) {
	var done atomic.Bool
	for range n {
		go func() {
			for !done.Load() {
				continue
			}
		}()
	}
	return func() { done.Store(true) }
}

// turn is how long one process may run a test again and again before the next
// test has its turn, so that each test has runs if the time does not suffice for all.
const turn = 5 * time.Second

// rounds gives each test its turns until all have run count times, or time is over.
func (h *hunt) rounds(ctx context.Context, targets []*target) error {
	limited, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	for round := 0; ; round++ {
		waiting := false
		for i, t := range targets {
			if t.runs >= h.count || t.skipped {
				continue
			}
			waiting = true
			before := t.runs
			if err := h.turn(limited, t, h.procs[(round+i)%len(h.procs)]); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return fmt.Errorf("running %s: %w", t.name, context.Cause(ctx))
			}
			if limited.Err() != nil {
				fmt.Fprintf(h.out, "the time is over\n")
				return nil
			}
			if t.runs == before {
				return fmt.Errorf("running %s of %s: it did not run; its output is in %s", t.name, t.folder, t.firstFailure)
			}
		}
		if !waiting {
			return nil
		}
	}
}

// turn runs a test in one process, and counts the runs that ended.
func (h *hunt) turn(ctx context.Context, t *target, procs int) error {
	runs := 1
	if t.runs > 0 {
		runs = int(min(turn/max(t.took/time.Duration(t.runs), time.Millisecond), time.Duration(h.count)))
		runs = max(1, min(runs, h.count-t.runs, (h.count+len(h.procs)-1)/len(h.procs)))
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-p", t.name, t.binary,
		"-test.run=^"+regexp.QuoteMeta(t.name)+"$", "-test.v=test2json", "-test.failfast",
		"-test.count="+strconv.Itoa(runs), "-test.cpu="+strconv.Itoa(procs), "-test.timeout="+h.timeout.String())
	cmd.Dir = t.folder
	cmd.WaitDelay = 10 * time.Second
	endWithChildren(cmd)
	p := newPackageRun(t.name)
	ended, failed, skipped := 0, 0, false
	began := time.Now()
	err := runEvents(cmd, func(e event) {
		p.add(e)
		if e.Test != t.name {
			return
		}
		switch e.Action {
		case "pass", "skip":
			ended++
			skipped = skipped || e.Action == "skip"
		case "fail":
			ended++
			failed++
		}
	})
	if ctx.Err() != nil {
		t.runs, t.failures = t.runs+ended, t.failures+failed
		return h.save(t, p, failed)
	}
	if err != nil && failed == 0 {
		ended, failed = ended+1, 1 // the process ended in the middle of a run, or after it
	}
	t.runs, t.failures, t.took = t.runs+ended, t.failures+failed, t.took+time.Since(began)
	t.skipped = skipped && failed == 0
	return h.save(t, p, failed)
}

// save writes the output of the first failure to a file.
func (h *hunt) save(t *target, p *packageRun, failed int) error {
	if failed == 0 || t.firstFailure != "" {
		return nil
	}
	t.firstFailure = strings.TrimSuffix(t.binary, ".test") + "." + t.name + ".txt"
	var all strings.Builder
	for _, run := range p.tests {
		all.WriteString(run.output.String())
	}
	all.WriteString(p.output.String())
	if err := os.WriteFile(t.firstFailure, []byte(all.String()), 0o600); err != nil {
		return fmt.Errorf("writing the output of a failure: %w", err)
	}
	fmt.Fprintf(h.out, "%s failed in run %d: %s\n", t.name, t.runs, t.firstFailure)
	return nil
}

// report prints what became of each test, those first that fail most often,
// and returns whether none failed.
func (h *hunt) report(targets []*target) bool {
	slices.SortStableFunc(targets, func(a, b *target) int { return cmp.Compare(b.failures, a.failures) })
	fmt.Fprintf(h.out, "\n%8s %8s %8s  %s\n", "failures", "runs", "seconds", "test")
	for _, t := range targets {
		fmt.Fprintf(h.out, "%8d %8d %8.1f  %s %s\n", t.failures, t.runs, t.took.Seconds(), filepath.Base(strings.TrimSuffix(t.binary, ".test")), t.name)
		if t.skipped {
			fmt.Fprintf(h.out, "%28sit skips itself\n", "")
		}
		if t.firstFailure != "" {
			fmt.Fprintf(h.out, "%28s%s\n", "", t.firstFailure)
		}
	}
	return targets[0].failures == 0
}
