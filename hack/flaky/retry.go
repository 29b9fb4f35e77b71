// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// module is a folder in which go test runs, with its environment, flags and packages.
type module struct {
	folder   string
	env      []string // NAME=VALUE, beside the environment of this process
	flags    []string
	packages []string // patterns; all of the module if empty
}

// everything are the arguments of go test that run all tests of the module.
func (m module) everything() []string {
	if len(m.packages) == 0 {
		return append(slices.Clone(m.flags), "./...")
	}
	return slices.Concat(m.flags, m.packages)
}

// retry runs the tests of modules, and what failed once more.
type retry struct {
	out     io.Writer
	retries int
	report  string // file of what is flaky, removed if nothing is; none if empty
	// goTest runs go test -json in the folder of a module, with its environment, and hands over
	// the events. It returns an *exec.ExitError if go test exits with another status than 0.
	goTest  func(ctx context.Context, m module, args []string, handle func(event)) error
	between func() // is called after each module; may be nil
}

// run returns whether every test has passed in its first run or its second.
func (r *retry) run(ctx context.Context, modules []module) (bool, error) {
	if r.report != "" {
		if err := os.Remove(r.report); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("removing the report of the last run: %w", err)
		}
	}
	all, err := r.first(ctx, modules)
	if err != nil {
		return false, err
	}
	passed := true
	var suspects []*suspect
	for i, m := range modules {
		again, failed := plan(m, all[i].all)
		suspects = append(suspects, again...)
		passed = passed && len(failed) == 0 && !all[i].cut && (all[i].exitedWithZero || len(again) > 0)
	}
	if len(suspects) == 0 || r.retries == 0 {
		return passed && len(suspects) == 0, nil
	}
	if len(suspects) > r.retries {
		fmt.Fprintf(r.out, "\n%d tests failed: %d of them run again alone, and the run has failed whatever they say.\n", len(suspects), r.retries)
		passed = false
	}
	for _, s := range suspects[:min(len(suspects), r.retries)] {
		if err := r.again(ctx, s); err != nil {
			return false, err
		}
		passed = passed && s.passed()
	}
	rested, err := r.rests(ctx, suspects)
	if err != nil {
		return false, err
	}
	return passed && rested, r.summarize(suspects)
}

// first runs the tests of all modules, one after another. All modules at once were sixteen packages on two cores, with
// servers that took two minutes to start.
func (r *retry) first(ctx context.Context, modules []module) (all []results, err error) {
	for _, m := range modules {
		done, err := r.tests(ctx, m, m.everything())
		if err != nil {
			return nil, err
		}
		all = append(all, done)
		if r.between != nil {
			r.between()
		}
	}
	return all, nil
}

// results are those of one go test.
type results struct {
	all            []*packageRun // in the order in which they ended
	exitedWithZero bool
	cut            bool // go test ended before a package had
}

// tests runs go test and prints its results as they come.
func (r *retry) tests(ctx context.Context, m module, args []string) (results, error) {
	var done results
	fmt.Fprintf(r.out, "go test %s, in %s\n", strings.Join(args, " "), m.folder)
	everything := slices.ContainsFunc(args, verbose)
	running := map[string]*packageRun{}
	err := r.goTest(ctx, m, args, func(e event) {
		if e.Output != "" && (everything || e.Package == "") {
			io.WriteString(r.out, e.Output) //nolint:errcheck // as the prints around it
		}
		if e.Package == "" {
			return
		}
		p := running[e.Package]
		if p == nil {
			p = newPackageRun(e.Package)
			running[e.Package] = p
		}
		p.add(e)
		if p.result != "" {
			delete(running, e.Package)
			done.all = append(done.all, p)
			if !everything {
				printPackage(r.out, p)
			}
		}
	})
	if ctx.Err() != nil {
		return done, fmt.Errorf("running go test in %s: %w", m.folder, context.Cause(ctx))
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		fmt.Fprintln(r.out, "FAIL")
	} else if err != nil {
		return done, fmt.Errorf("running go test in %s: %w", m.folder, err)
	}
	done.exitedWithZero = err == nil
	done.cut = len(running) > 0
	for name := range running {
		fmt.Fprintf(r.out, "FAIL\t%s [no result]\n", name)
	}
	return done, nil
}

// verbose is whether go test prints the output of tests that pass with this flag.
func verbose(flag string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	return strings.HasPrefix(flag, "-") && slices.Contains([]string{"v", "bench", "list", "fuzz"}, strings.TrimPrefix(name, "test."))
}

// again runs a suspect alone.
func (r *retry) again(ctx context.Context, s *suspect) error {
	fmt.Fprintf(r.out, "\n=== running again alone: %s in %s\n", s.test, s.in.name)
	got, err := r.tests(ctx, s.module, s.alone())
	if err != nil {
		return err
	}
	s.second = newPackageRun(s.in.name)
	if i := slices.IndexFunc(got.all, func(p *packageRun) bool { return p.name == s.in.name }); i >= 0 && len(got.all) == 1 {
		s.second = got.all[i]
	}
	return nil
}

// rests runs what did not run because a suspect ended its process, where all
// suspects of the package have passed, and returns whether it passed.
func (r *retry) rests(ctx context.Context, suspects []*suspect) (bool, error) {
	passed := true
	for i, s := range suspects {
		of := slices.DeleteFunc(slices.Clone(suspects), func(other *suspect) bool { return other.in != s.in })
		if of[0] != suspects[i] || slices.ContainsFunc(of, func(s *suspect) bool { return !s.passed() }) {
			continue
		}
		var names []string
		for _, s := range of {
			names = append(names, s.test)
		}
		if args := rest(s.in, s.module.flags, names); args != nil {
			fmt.Fprintf(r.out, "\n=== running what the failure kept from running in %s\n", s.in.name)
			got, err := r.tests(ctx, s.module, args)
			if err != nil {
				return false, err
			}
			passed = passed && got.exitedWithZero && !got.cut
		}
	}
	return passed, nil
}

// shownLines is how many lines are printed of the begin and of the end of an
// output in the summary. All of it stands where the test failed.
const shownLines = 100

// summarize prints which tests are flaky, with both outputs.
func (r *retry) summarize(suspects []*suspect) error {
	var text strings.Builder
	for _, s := range suspects {
		if !s.passed() {
			continue
		}
		if text.Len() == 0 {
			fmt.Fprintf(&text, "FLAKY: failed, and passed when run again alone. To be mended: they will fail again.\n")
		}
		fmt.Fprintf(&text, "\nFLAKY %s %s\n--- the first run, which failed:\n%s--- the second run, which passed:\n%s",
			s.in.name, s.test, excerpt(s.firstOutput(), shownLines), excerpt(s.second.outputOf(s.test), shownLines))
	}
	if text.Len() == 0 {
		return nil
	}
	fmt.Fprintf(r.out, "\n=== %s\n", text.String())
	if r.report == "" {
		return nil
	}
	if err := os.WriteFile(r.report, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("writing the report of what is flaky: %w", err)
	}
	return nil
}

// firstOutput is what the test printed when it failed, and what its package
// did: a panic may be in either.
func (s *suspect) firstOutput() string {
	return s.in.outputOf(s.test) + s.in.output.String()
}

// goTest runs the real one.
func goTest(ctx context.Context, m module, args []string, handle func(event)) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Env = m.folder, append(os.Environ(), m.env...)
	cmd.Stderr = os.Stderr
	// A terminal sends Ctrl-C to the go command as well, which then ends the tests.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return runEvents(cmd, handle)
}

// runEvents runs a command that prints events.
func runEvents(cmd *exec.Cmd, handle func(event)) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("connecting to go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	read := readEvents(out, handle)
	if err := cmd.Wait(); err != nil {
		return err
	}
	return read
}
