// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
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

// upCluster is what the tutorial's reader has in the other terminal. It returns the
// kubeconfig.
func upCluster(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	setpoint, err := controlplanetest.Binary("setpoint")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	up := exec.Command(setpoint, "up", "--kubeconfig", kubeconfig)
	var said bytes.Buffer
	up.Stderr = &said
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	t.Cleanup(func() {
		if err := up.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
		if err := <-ended; err != nil || t.Failed() {
			t.Logf("the cluster ended with %v and said:\n%s", err, said.String())
		}
	})
	controlplanetest.AwaitFile(t, "there is a cluster", kubeconfig)
	return kubeconfig
}

func TestTheSessionsOfTheTutorialGoAsItSays(t *testing.T) {
	kubeconfig := upCluster(t)
	kubectl, err := controlplanetest.Binary("kubectl")
	if err != nil {
		t.Fatal(err)
	}
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
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, config, hosts(outside), manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
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
			controlplanetest.Eventually(t, step.command+" shows\n"+want+"\n", func() bool {
				if last != want {
					last = execute(step.command)
				}
				return last == want
			})
			continue
		}
		if last != want {
			t.Fatalf("%s says\n%s\nwant\n%s", step.command, last, want)
		}
	}
}
