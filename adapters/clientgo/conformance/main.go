// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// files are the tests that are run, by their names in k8s.io/client-go/tools/cache.
var files = []string{"shared_informer_test.go", "index_test.go"}

// notPassed are the tests that do not pass, with the reasons.
var notPassed = map[string]string{
	"TestSharedInformerTransformer": "its transform changes the names of objects, which the cache refuses",
}

// notBuilt are the tests that cannot be built, with the reasons.
var notBuilt = map[string]string{
	"TestResyncCheckPeriod": "it reads the private fields of client-go's informer alone",
}

// limit is how long the tests may take. TestSharedInformerHandlerAbuse has a hundred goroutines that add
// and remove handlers without a pause, and takes minutes on a machine that does other work.
const limit = "10m"

// testOnly are modules that the tests of client-go import.
var testOnly = []string{"github.com/google/go-cmp", "github.com/stretchr/testify"}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	upstream, err := command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "k8s.io/client-go")
	if err != nil {
		return err
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(upstream), " ")
	work, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // it is a temporary folder
	overlay, err := writeOverlay(work, dir)
	if err != nil {
		return err
	}
	modfile, err := writeModfile(work, dir)
	if err != nil {
		return err
	}
	results, log, err := test(overlay, modfile)
	if err != nil {
		return err
	}
	return report(out, version, results, log)
}

// writeOverlay writes the adapted tests, and the file that puts them into package suite.
func writeOverlay(work, upstream string) (string, error) {
	folder, err := filepath.Abs("clientgo/conformance/internal/suite")
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(upstream, "tools/cache", name))
		if err != nil {
			return "", err
		}
		text, err = adapt(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		adapted := filepath.Join(work, name)
		if err := os.WriteFile(adapted, text, 0o600); err != nil { //nolint:gosec // the folder is a temporary one of ours
			return "", err
		}
		overlay.Replace[filepath.Join(folder, name)] = adapted
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// private are the functions of the tests that read private fields. Package suite has its own.
var private = []string{"eventHandlerCount", "isStarted", "isRegistered"}

// clocks are the lines that give an informer another clock, or move it. The informers of this
// project have the clock of the machine.
var clocks = regexp.MustCompile(`(?m)^\s*(clock := testingclock\.|informer\.clock = |informer\.processor\.clock = |clock\.Step\().*\n`)

// adapt changes a test of client-go so that it builds outside of client-go's package.
func adapt(text []byte) ([]byte, error) {
	var err error
	for _, name := range slices.Concat(private, slices.Collect(maps.Keys(notBuilt))) {
		if text, err = withoutFunction(text, name); err != nil {
			return nil, err
		}
	}
	text = clocks.ReplaceAll(text, nil)
	for _, change := range [][2]string{
		{"package cache\n", "package suite\n"},
		{"import (\n", "import (\n\t. \"k8s.io/client-go/tools/cache\"\n"},
		{"NewSharedInformer(", "newSharedInformer("},
		{"NewIndexer(MetaNamespaceKeyFunc, ", "newIndexer(t, "},
		{"\ttestingclock \"k8s.io/utils/clock/testing\"\n", ""},
	} {
		text = bytes.ReplaceAll(text, []byte(change[0]), []byte(change[1]))
	}
	return text, nil
}

// withoutFunction cuts a function out, if it is there.
func withoutFunction(text []byte, name string) ([]byte, error) {
	from := bytes.Index(text, []byte("\nfunc "+name+"("))
	if from < 0 {
		return text, nil
	}
	size := bytes.Index(text[from:], []byte("\n}\n"))
	if size < 0 {
		return nil, fmt.Errorf("the function %s does not end", name)
	}
	return slices.Delete(text, from, from+size+len("\n}")), nil
}

// writeModfile writes a copy of go.mod with the modules that client-go's tests import, in the
// versions of client-go.
func writeModfile(work, upstream string) (string, error) {
	path := filepath.Join(work, "go.mod")
	text, err := os.ReadFile("go.mod")
	if err != nil {
		return "", err
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	text = bytes.ReplaceAll(text, []byte("=> ../\n"), []byte("=> "+root+"\n"))
	theirs, err := os.ReadFile(filepath.Join(upstream, "go.mod"))
	if err != nil {
		return "", err
	}
	for _, module := range testOnly {
		version := regexp.MustCompile(regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(theirs)
		if version == nil {
			return "", fmt.Errorf("client-go requires no %s any more", module)
		}
		text = fmt.Appendf(text, "require %s %s\n", module, version[1])
	}
	if err := os.WriteFile(path, text, 0o600); err != nil { //nolint:gosec // as above
		return "", err
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(filepath.Join(work, "go.sum"), sums, 0o600) //nolint:gosec // as above
}

// test runs the tests and returns the result of each, "pass", "fail", "skip", or "run" for one that
// did not end, and their output.
func test(overlay, modfile string) (results map[string]string, log string, err error) {
	c := exec.CommandContext(context.Background(), "go", "test", "-json", "-count=1", "-timeout", limit, "-tags", "conformance", "-mod=mod",
		"-overlay", overlay, "-modfile", modfile, "./clientgo/conformance/internal/suite")
	c.Env = append(os.Environ(), "GOWORK=off") // a workspace takes no other go.mod
	c.Stderr = os.Stderr
	text, err := c.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, "", err
	}
	results = map[string]string{}
	for line := range bytes.Lines(text) {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			log += string(line)
			continue
		}
		log += event.Output
		switch event.Action {
		case "run", "pass", "fail", "skip":
			if event.Test != "" && !strings.Contains(event.Test, "/") {
				results[event.Test] = event.Action // it stays "run" if the process ends within the test
			}
		}
	}
	if len(results) == 0 {
		return nil, "", fmt.Errorf("no test ran:\n%s", log)
	}
	return results, log, nil
}

func report(out io.Writer, version string, results map[string]string, log string) error {
	passed, unexpected := 0, []string{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		_, known := notPassed[name]
		switch result := results[name]; {
		case result == "pass" && known:
			unexpected = append(unexpected, name+" passes, and is in the list of those that do not")
		case result == "pass":
			passed++
		case !known:
			unexpected = append(unexpected, name+": "+result)
		}
	}
	for name := range notPassed {
		if results[name] == "" {
			unexpected = append(unexpected, name+" is in the list of those that do not pass, and did not run")
		}
	}
	fmt.Fprintf(out, "client-go %s, %s: %d of %d tests pass\n", version, strings.Join(files, " and "), passed, len(results)+len(notBuilt))
	for _, list := range []map[string]string{notPassed, notBuilt} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			fmt.Fprintf(out, "  not %s: %s\n", name, list[name])
		}
	}
	if len(unexpected) == 0 {
		return nil
	}
	fmt.Fprintln(out, log)
	return errors.New(strings.Join(unexpected, "\n"))
}

func command(name string, args ...string) (string, error) {
	c := exec.CommandContext(context.Background(), name, args...)
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return string(text), nil
}
