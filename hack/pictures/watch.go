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

// seenAll is what a watch that is verbose says once it is to tell of every change.
const seenAll = "what was there has been seen"

const startWithin = 30 * time.Second

// watch is a "setpoint watch" on a terminal of its own.
type watch struct {
	cmd    *exec.Cmd
	person *os.File
	over   chan struct{} // closed when nothing more is shown

	mu    sync.Mutex
	shown strings.Builder
}

// start starts a watch and waits until it tells of every change.
func start(ctx context.Context, setpoint string, columns int, args []string) (*watch, error) {
	person, program, err := pseudoTerminal(columns, 50)
	if err != nil {
		return nil, err
	}
	defer func() { _ = program.Close() }() // the watch has its own
	w := &watch{person: person, over: make(chan struct{})}
	// What it says of itself goes elsewhere: -v is how it is known to be ready.
	w.cmd = exec.CommandContext(ctx, setpoint, append(append([]string{"watch"}, args...), "-v", "--log-format", "text")...)
	w.cmd.Stdin, w.cmd.Stdout = program, program
	w.cmd.Env = append(w.cmd.Environ(), "TERM=xterm-256color", "NO_COLOR=", "TZ=UTC")
	w.cmd.Cancel = func() error { return w.cmd.Process.Signal(os.Interrupt) }
	w.cmd.WaitDelay = startWithin
	said, err := w.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting setpoint watch: %w", err)
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting setpoint watch: %w", err)
	}
	go w.read()
	ready := make(chan error, 1)
	go listen(said, ready)
	select {
	case err = <-ready:
	case <-time.After(startWithin):
		err = fmt.Errorf("setpoint watch %s: has not seen within %s what is there", strings.Join(args, " "), startWithin)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// listen waits until a watch says that it is ready, and reads on.
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
	for lines.Scan() { // so that it is not held up
		continue
	}
	select {
	case ready <- fmt.Errorf("setpoint watch ended before it was ready; it said\n%s", strings.Join(all, "\n")):
	default:
	}
}

// read reads what is shown, until the program at the other side has gone.
func (w *watch) read() {
	defer close(w.over)
	buffer := make([]byte, 32<<10)
	for {
		n, err := w.person.Read(buffer)
		w.mu.Lock()
		w.shown.Write(buffer[:n])
		w.mu.Unlock()
		if err != nil { // EIO: nobody has the other side any more
			return
		}
	}
}

// sofar returns what was shown until now.
func (w *watch) sofar() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown.String()
}

// end stops the watch as Ctrl-C does.
func (w *watch) end() error {
	defer func() { _ = w.person.Close() }()
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending setpoint watch: %w", err)
	}
	<-w.over
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("setpoint watch: %w", err)
	}
	return nil
}
