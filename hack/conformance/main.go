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
	"syscall"
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
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *assets == "" {
		return errors.New("-assets: want a directory, such as \"setpoint assets\" prints")
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	failed := false
	for _, s := range chosen {
		counts, err := s.run(ctx, *assets)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		failed = show(os.Stdout, s, counts) || failed
	}
	if failed {
		return errors.New("not everything passed")
	}
	return nil
}

// choose returns the suites with these names; all if there are none.
func choose(names []string) ([]suite, error) {
	if len(names) == 0 {
		return suites, nil
	}
	var chosen []suite
	for _, name := range names {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is no suite: suites.go lists them", name)
		}
		chosen = append(chosen, suites[i])
	}
	return chosen, nil
}
