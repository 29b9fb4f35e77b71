// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// endWithin is how long a program may take to end after the signal that asks for it.
const endWithin = 30 * time.Second

// Program is a program on a terminal of its own. Make it with [New]. What it shows may be read by all goroutines.
type Program struct {
	// Cmd is the program. It may be changed until Start.
	Cmd *exec.Cmd

	person, program *os.File      // the sides of the terminal
	over            chan struct{} // closed when nothing more is shown

	mu    sync.Mutex
	shown strings.Builder
}

// New prepares a program on a new terminal of 50 lines. Start or Discard must be called. The end of ctx ends the program as
// Ctrl-C does.
func New(ctx context.Context, columns int, program string, args ...string) (*Program, error) {
	person, side, err := pair(columns, 50)
	if err != nil {
		return nil, err
	}
	p := &Program{person: person, program: side, over: make(chan struct{})}
	p.Cmd = exec.CommandContext(ctx, program, args...)
	p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = side, side, side
	p.Cmd.Env = append(p.Cmd.Environ(), "TERM=xterm-256color", "NO_COLOR=", "TZ=UTC")
	p.Cmd.Cancel = func() error { return p.Cmd.Process.Signal(os.Interrupt) }
	p.Cmd.WaitDelay = endWithin
	p.Cmd.SysProcAttr = ownTerminal()
	return p, nil
}

// Start starts the program.
func (p *Program) Start() error {
	err := p.Cmd.Start()
	_ = p.program.Close() // the program has its own
	if err != nil {
		_ = p.person.Close()
		return fmt.Errorf("starting %s: %w", p.Cmd.Path, err)
	}
	go p.read()
	return nil
}

// Discard releases the terminal of a program that is not started.
func (p *Program) Discard() { _ = errors.Join(p.person.Close(), p.program.Close()) }

// read reads what is shown, until the program has ended.
func (p *Program) read() {
	defer close(p.over)
	buffer := make([]byte, 32<<10)
	for {
		n, err := p.person.Read(buffer)
		p.mu.Lock()
		p.shown.Write(buffer[:n])
		p.mu.Unlock()
		if err != nil { // EIO: no program has the other side any more
			return
		}
	}
}

// Shown returns what the program has shown.
func (p *Program) Shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

// Over is closed when no program has the terminal any more.
func (p *Program) Over() <-chan struct{} { return p.over }

// Until waits until what is shown fulfils a condition. It is an error if the program ends before, or if a time has passed.
func (p *Program) Until(ctx context.Context, within time.Duration, holds func(shown string) bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	tooLate := time.NewTimer(within)
	defer tooLate.Stop()
	for !holds(p.Shown()) {
		var err error
		select {
		case <-tick.C:
			continue
		case <-p.over:
			if holds(p.Shown()) {
				return nil
			}
			err = errors.New("it ended")
		case <-tooLate.C:
			err = fmt.Errorf("it is not ready after %s", within)
		case <-ctx.Done():
			err = ctx.Err()
		}
		return fmt.Errorf("%s: %w; it showed\n%s", strings.Join(p.Cmd.Args, " "), err, p.Shown())
	}
	return nil
}

// End stops the program as Ctrl-C does, and waits for its end.
func (p *Program) End() error { return p.stop(syscall.SIGINT) }

// Kill ends the program without any clean-up, as a crash does, and waits for its end.
func (p *Program) Kill() error {
	err := p.stop(syscall.SIGKILL)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && !failed.Exited() {
		return nil // the signal has ended it
	}
	return err
}

// stop sends a signal and waits for the end of the program.
func (p *Program) stop(signal syscall.Signal) error {
	defer func() { _ = p.person.Close() }()
	if err := p.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.Cmd.Path, err)
	}
	kill := time.AfterFunc(endWithin, func() { _ = p.Cmd.Process.Kill() })
	defer kill.Stop()
	<-p.over
	if err := p.Cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.Cmd.Path, err)
	}
	return nil
}
