// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run returns whether all tests passed.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	if len(args) == 0 {
		return false, errors.New("say what to do: retry or hunt; go doc ./hack/flaky explains them")
	}
	switch args[0] {
	case "retry":
		return runRetry(ctx, args[1:], out)
	case "hunt":
		return runHunt(ctx, args[1:], out)
	default:
		return false, fmt.Errorf("%q is neither retry nor hunt", args[0])
	}
}

func runRetry(ctx context.Context, args []string, out io.Writer) (bool, error) {
	flags := flag.NewFlagSet("retry", flag.ContinueOnError)
	r := retry{out: out, goTest: goTest}
	flags.IntVar(&r.retries, "retries", 0, "how many tests that fail are run again")
	flags.StringVar(&r.report, "report", "", "`file` to write the flaky tests to, with both outputs")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	modules, err := modulesOf(flags.Args())
	if err != nil {
		return false, err
	}
	rest, end, err := lend(out)
	if err != nil {
		return false, err
	}
	defer end()
	r.between = rest
	return r.run(ctx, modules)
}

// modulesOf splits what stands between the double dashes.
func modulesOf(args []string) ([]module, error) {
	var modules []module
	for len(args) > 0 {
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		if end == 0 {
			return nil, errors.New("a folder must stand after each --")
		}
		modules = append(modules, moduleOf(args[:end]))
		args = args[min(end+1, len(args)):]
	}
	if len(modules) == 0 {
		return nil, errors.New("no folder of a module is given")
	}
	return modules, nil
}

// moduleOf takes a folder, settings of the environment, flags of go test, and packages, in this
// order. There may be none but the folder.
func moduleOf(args []string) module {
	env, others := cutBefore(args[1:], func(arg string) bool { return !setting.MatchString(arg) })
	flags, packages := cutBefore(others, func(arg string) bool { return strings.HasPrefix(arg, "./") })
	return module{folder: args[0], env: env, flags: flags, packages: packages}
}

// cutBefore cuts arguments in two, before the first that begins the second part.
func cutBefore(args []string, begins func(string) bool) (before, after []string) {
	i := slices.IndexFunc(args, begins)
	if i < 0 {
		return args, nil
	}
	return args[:i], args[i:]
}

// setting is one of the environment.
var setting = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
