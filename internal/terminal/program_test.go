// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package terminal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/terminal"
)

// start starts a script of sh on a terminal, and waits until it has shown a text.
func start(t *testing.T, script, text string) *terminal.Program {
	t.Helper()
	p, err := terminal.New(t.Context(), 80, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.Until(t.Context(), time.Minute, func(shown string) bool { return strings.Contains(shown, text) }); err != nil {
		t.Fatal(err)
	}
	return p
}

// A program has a terminal, and ends as Ctrl-C ends it.
func TestAProgramHasATerminal(t *testing.T) {
	p := start(t, `trap 'echo bye; exit 0' INT; test -t 0 && test -t 1 && test -t 2 && echo three; while :; do sleep 0.01; done`, "three")
	if err := p.End(); err != nil || !strings.Contains(p.Shown(), "bye") {
		t.Errorf("the program ended with %v and showed %q", err, p.Shown())
	}
}

// A program that is killed has no time to say anything, and that is no error.
func TestAProgramIsKilled(t *testing.T) {
	p := start(t, `trap 'echo bye' INT TERM; echo here; exec sleep 1000`, "here")
	if err := p.Kill(); err != nil || strings.Contains(p.Shown(), "bye") {
		t.Errorf("the program ended with %v and showed %q", err, p.Shown())
	}
}

// A program that ends before it has shown what is awaited is an error with what it has shown.
func TestAProgramThatEndsTooEarly(t *testing.T) {
	p := start(t, `echo no; exit 3`, "no")
	err := p.Until(t.Context(), time.Minute, func(shown string) bool { return strings.Contains(shown, "yes") })
	if err == nil || !strings.Contains(err.Error(), "it ended; it showed\nno") {
		t.Errorf("waiting for what is never shown: %v", err)
	}
	if err := p.End(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the end is %v, want the status 3", err)
	}
}
