// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const startWithin = 30 * time.Second

// terminal is a program on a terminal of its own.
type terminal struct {
	cmd    *exec.Cmd
	person *os.File
	over   chan struct{} // closed when nothing more is shown

	mu    sync.Mutex
	shown strings.Builder
}

// newTerminal prepares a program on a new terminal, and returns the side of the terminal
// that the program writes to. The caller starts the program, and closes that side.
func newTerminal(ctx context.Context, columns int, program string, args ...string) (t *terminal, side *os.File, err error) {
	person, side, err := pseudoTerminal(columns, 50)
	if err != nil {
		return nil, nil, err
	}
	t = &terminal{person: person, over: make(chan struct{})}
	t.cmd = exec.CommandContext(ctx, program, args...)
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = side, side, side
	t.cmd.Env = append(t.cmd.Environ(), "TERM=xterm-256color", "NO_COLOR=", "TZ=UTC")
	t.cmd.Cancel = func() error { return t.cmd.Process.Signal(os.Interrupt) }
	t.cmd.WaitDelay = startWithin
	return t, side, nil
}

// start starts the program.
func (t *terminal) start() error {
	if err := t.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", t.cmd.Path, err)
	}
	go t.read()
	return nil
}

// read reads what is shown, until the program has ended.
func (t *terminal) read() {
	defer close(t.over)
	buffer := make([]byte, 32<<10)
	for {
		n, err := t.person.Read(buffer)
		t.mu.Lock()
		t.shown.Write(buffer[:n])
		t.mu.Unlock()
		if err != nil { // EIO: no program has the other side any more
			return
		}
	}
}

// sofar returns what was shown until now.
func (t *terminal) sofar() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.String()
}

// end stops the program as Ctrl-C does.
func (t *terminal) end() error {
	defer func() { _ = t.person.Close() }()
	if err := t.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", t.cmd.Path, err)
	}
	<-t.over
	if err := t.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", t.cmd.Path, err)
	}
	return nil
}

// seenAll is the log message of a watch that is ready: it publishes every change from now on.
const seenAll = "what was there has been seen"

// startWatch starts "setpoint watch" and waits until it publishes every change.
func startWatch(ctx context.Context, setpoint string, columns int, args []string) (*terminal, error) {
	// The log is read here, and not shown: -v tells when the watch is ready.
	all := append(append([]string{"watch"}, args...), "-v", "--log-format", "text")
	t, side, err := newTerminal(ctx, columns, setpoint, all...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = side.Close() }() // the watch has its own
	t.cmd.Stderr = nil
	said, err := t.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting setpoint watch: %w", err)
	}
	if err := t.start(); err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	go listen(said, ready)
	select {
	case err = <-ready:
	case <-time.After(startWithin):
		err = fmt.Errorf("setpoint watch %s: it is not ready after %s", strings.Join(args, " "), startWithin)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, t.end())
	}
	return t, nil
}

// listen reads the log of a watch to its end, and reports when the watch is ready.
func listen(said io.Reader, ready chan<- error) {
	var all []string
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		all = append(all, lines.Text())
		if strings.Contains(lines.Text(), seenAll) {
			ready <- nil
			break
		}
	}
	for lines.Scan() { // a full pipe would block the watch
		continue
	}
	select {
	case ready <- fmt.Errorf("setpoint watch ended before it was ready; its log is\n%s", strings.Join(all, "\n")):
	default:
	}
}

// ready is what "setpoint up" shows last when its cluster is ready.
const ready = "Ctrl-C stops everything."

// startUp starts "setpoint up" and waits until its cluster is ready. It returns the path of
// the kubeconfig that it shows.
func startUp(ctx context.Context, setpoint string, columns int) (t *terminal, kubeconfig string, err error) {
	t, side, err := newTerminal(ctx, columns, setpoint, "up")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = side.Close() }() // the program has its own
	if err := t.start(); err != nil {
		return nil, "", err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	tooLate := time.After(4 * startWithin)
	for !strings.Contains(t.sofar(), ready) {
		select {
		case <-tick.C:
			continue
		case <-t.over:
			err = errors.New("it ended")
		case <-tooLate:
			err = errors.New("its cluster takes too long to start")
		case <-ctx.Done():
			err = ctx.Err()
		}
		return nil, "", errors.Join(fmt.Errorf("setpoint up: %w; it showed\n%s", err, t.sofar()), t.end())
	}
	_, path, _ := strings.Cut(t.sofar(), "KUBECONFIG=")
	path, _, _ = strings.Cut(path, "\r")
	return t, path, nil
}
