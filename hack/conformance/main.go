// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/setpoint-io/setpoint/internal/operators"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	assets := flags.String("assets", "", "`directory` with kube-apiserver, etcd and kubectl")
	adapters := flags.String("adapters", "", "`directory` of the module of the adapters: run the tests of operators, with and without its cache")
	packages := flags.String("packages", "", "`patterns` of packages, separated by commas: run the tests of an operator in these alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *assets == "" {
		return errors.New("-assets: want a directory, such as \"setpoint assets\" prints")
	}
	var failed bool
	var err error
	if *adapters != "" {
		failed, err = runOperators(ctx, *assets, *adapters, strings.FieldsFunc(*packages, func(r rune) bool { return r == ',' }), flags.Args())
	} else {
		failed, err = runSuites(ctx, *assets, flags.Args())
	}
	if err == nil && failed {
		err = errors.New("not everything passed")
	}
	return err
}

// runSuites runs suites and prints their counts. It reports whether anything failed.
func runSuites(ctx context.Context, assets string, names []string) (failed bool, err error) {
	chosen, err := choose(suites, names, func(s suite) string { return s.name })
	if err != nil {
		return false, err
	}
	for _, s := range chosen {
		counts, err := s.run(ctx, assets)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		failed = show(os.Stdout, s, counts) || failed
	}
	return failed, nil
}

// runOperators runs the tests of operators with both caches and prints their counts. It reports
// whether those of an operator do worse with NewCache.
func runOperators(ctx context.Context, assets, adapters string, packages, names []string) (worse bool, err error) {
	chosen, err := choose(operators.List, names, func(o operators.Operator) string { return o.Name })
	if err != nil {
		return false, err
	}
	for _, o := range chosen {
		theirs, ours, err := runTwice(ctx, os.Stdout, o, assets, adapters, packages)
		if err != nil {
			return false, fmt.Errorf("%s: %w", o.Name, err)
		}
		worse = compare(os.Stdout, o, theirs, ours) || worse
	}
	return worse, nil
}

// choose returns those of a list with these names; all if there are none.
func choose[T any](all []T, names []string, nameOf func(T) string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []T
	for _, name := range names {
		i := slices.IndexFunc(all, func(one T) bool { return nameOf(one) == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is not in the list: suites.go and package internal/operators have the names", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
