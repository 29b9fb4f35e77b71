// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// notPassed are the tests that do not pass, with the reasons.
var notPassed = map[string]string{
	"Cache with selectors Should list serviceaccounts and find exactly one in namespace test-namespace-1": "the control plane has the controller of service accounts, which makes one more in each namespace",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	packages := os.Args[1:]
	if len(packages) == 0 {
		packages = []string{"pkg/cache", "pkg/internal/controller", "pkg/builder", "pkg/controller", "pkg/manager", "pkg/source", "pkg/client", "pkg/cluster"}
	}
	if err := run(ctx, packages); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

func run(ctx context.Context, packages []string) error {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	module := filepath.Join(dir, "module")
	if err := copyModule(ctx, module); err != nil {
		return fmt.Errorf("copying controller-runtime: %w", err)
	}
	var failed []error
	for _, p := range packages {
		specs, err := test(ctx, dir, module, p)
		if err == nil {
			err = report(p, specs)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p, err))
		}
	}
	return errors.Join(failed...)
}

// spec is a test of a suite of Ginkgo, as its report has it.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeText            string
	LeafNodeType            string
	State                   string
}

func (s *spec) name() string {
	return strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
}

// test builds the tests of a package and runs them.
func test(ctx context.Context, dir, module, p string) ([]spec, error) {
	binary, file := filepath.Join(dir, "suite.test"), filepath.Join(dir, "report.json")
	if err := command(ctx, module, nil, "go", "test", "-mod=mod", "-c", "-o", binary, "./"+p); err != nil {
		return nil, fmt.Errorf("building the tests: %w", err)
	}
	cluster, err := startCluster(ctx, filepath.Join(dir, "cluster"))
	if err != nil {
		return nil, err
	}
	defer cluster.stop()
	environment := []string{"KUBECONFIG=" + cluster.kubeconfig, "USE_EXISTING_CLUSTER=true"}
	ran := command(ctx, filepath.Join(module, p), environment, binary, "-test.timeout=10m", "-ginkgo.json-report="+file)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Join(err, ran) // a failure of a test alone leaves a report
	}
	var suites []struct{ SpecReports []spec }
	if err := json.Unmarshal(text, &suites); err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	var specs []spec
	for _, suite := range suites {
		specs = append(specs, suite.SpecReports...)
	}
	return specs, nil
}

// report prints the counts. It fails if the list of tests that do not pass is not right.
func report(p string, specs []spec) error {
	var wrong []error
	passed, listed := 0, 0
	for _, s := range specs {
		if s.LeafNodeType != "It" || s.State == "pending" { // pending: controller-runtime itself does not run it
			continue
		}
		reason, expected := notPassed[s.name()]
		switch {
		case s.State == "passed" && expected:
			wrong = append(wrong, fmt.Errorf("%q passes, and the list says that it does not", s.name()))
		case s.State == "passed":
			passed++
		case expected:
			listed++
			fmt.Printf("  not passed: %s: %s\n", s.name(), reason)
		default:
			wrong = append(wrong, fmt.Errorf("%q %s", s.name(), s.State))
		}
	}
	fmt.Printf("%s: %d passed, %d not passed for a known reason, %d wrong\n", p, passed, listed, len(wrong))
	if passed == 0 {
		wrong = append(wrong, errors.New("no test has passed"))
	}
	return errors.Join(wrong...)
}

// command runs a program in a folder. Its output is shown if it fails.
func command(ctx context.Context, dir string, environment []string, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // the callers name go and the tests
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}
