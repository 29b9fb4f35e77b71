// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/setpointtest"
)

const tutorial = "../../docs/tutorial.md"

// blocks returns the blocks of code of the tutorial in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(tutorial)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block of %s", tutorial, language)
	}
	return found
}

func TestTheCodeOfTheTutorialIsThatOfTheProgram(t *testing.T) {
	for language, pattern := range map[string]string{"go": "*.go", "yaml": "*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var program strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			program.WriteString("\n")
			program.Write(text)
		}
		for _, block := range blocks(t, language) {
			// A block consists of whole lines.
			if !strings.Contains(program.String(), "\n"+block+"\n") {
				t.Errorf("%s is not in examples/website as the tutorial has it:\n%s", language, block)
			}
		}
	}
}

// A step is a command of a session and what it writes.
type step struct{ command, output string }

func session(t *testing.T) []step {
	t.Helper()
	var steps []step
	for line := range strings.Lines(strings.Join(blocks(t, "console"), "\n")) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: strings.TrimSpace(command)})
			continue
		}
		steps[len(steps)-1].output += line
	}
	return steps
}

var (
	address = regexp.MustCompile(`\b10(\.\d+){3}\b`)
	age     = regexp.MustCompile(`(?m)\b\d+(m\d*s)?s?$`)
	spaces  = regexp.MustCompile(`[ \t]+`)
)

// normal leaves out what is another each time: addresses, ages, and columns that are as
// wide as these.
func normal(output string) string {
	output = address.ReplaceAllString(strings.TrimSpace(output), "ADDRESS")
	output = spaces.ReplaceAllString(output, " ")
	return age.ReplaceAllString(strings.ReplaceAll(output, " \n", "\n"), "AGE")
}

// findKubectl returns the path of kubectl: of the one that was built with the project, or
// of any other.
func findKubectl(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("KUBECTL"), "../../bin/kubectl", "kubectl"} {
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				return path
			}
		}
	}
	t.Fatal("there is no kubectl: make kubectl builds it")
	return ""
}

// buffer is a buffer that one goroutine fills and another one reads.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

var times = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d |after=\S+`)

func withoutTimes(text string) string { return times.ReplaceAllString(text, "") }

// logLines returns the lines of the program's log that the tutorial shows, without times.
func logLines(t *testing.T) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(strings.Join(blocks(t, "text"), "\n")) {
		if line = strings.TrimSuffix(line, "\n"); times.MatchString(line) {
			lines = append(lines, withoutTimes(line))
		}
	}
	if len(lines) == 0 {
		t.Errorf("%s shows no line of the log", tutorial)
	}
	return lines
}

func TestTheSessionsOfTheTutorialGoAsItSays(t *testing.T) {
	cluster := setpointtest.Own(t) // the sessions show what is in it
	kubeconfig, kubectl := cluster.Kubeconfig, findKubectl(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// What the reader's folder has: the examples, and a directory for the hosts.
	dir := t.TempDir()
	outside := filepath.Join(dir, "hosts")
	if err := errors.Join(os.Mkdir(outside, 0o700), os.Symlink(filepath.Dir(here), filepath.Join(dir, "examples"))); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	logged := &buffer{}
	log.SetOutput(io.MultiWriter(t.Output(), logged)) // of slog.Default, with which the program logs
	go func() { ended <- run(ctx, cluster.Config, hosts(outside)) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		log.SetOutput(os.Stderr)
		for _, line := range logLines(t) {
			if !strings.Contains(withoutTimes(logged.String()), line) {
				t.Errorf("the program logs no line %q:\n%s", line, logged)
			}
		}
	}()

	execute := func(command string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "kubectl ", kubectl+" "))
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+dir)
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s: %v", command, err) // the output says why, and may be what is expected
		}
		return normal(string(output))
	}
	reads := regexp.MustCompile(`^(kubectl get|cat|ls) `)
	for _, step := range session(t) {
		want := normal(step.output)
		last := execute(step.command)
		if reads.MatchString(step.command) { // a reader is slower than a program
			setpointtest.Eventually(t, step.command+" shows\n"+want+"\n", func() error {
				if last == want {
					return nil
				}
				last = execute(step.command)
				return errors.New("it shows\n" + last)
			})
			continue
		}
		if last != want {
			t.Fatalf("%s says\n%s\nwant\n%s", step.command, last, want)
		}
	}
}
