// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a child may take to stop. It takes half a second, and gives up by
// itself after 20 s.
const stopGrace = 30 * time.Second

// killGrace is how long a process may take to end after SIGKILL: the kernel ends it within
// milliseconds unless it waits for a device. Another process that has its output open holds
// the end back as well.
const killGrace = 30 * time.Second

// Endpoints is where a control plane that is ready can be reached.
type Endpoints struct {
	Kubeconfig string   // path; the administrator's, readable by its owner alone
	Servers    []string // URLs of the API servers
	DataDir    string   // path

	// What a controller manager needs beside them, as paths.
	CAFile                string // certificate authority of the API servers and all users
	CAKeyFile             string // its private key
	ServiceAccountKeyFile string // private key that signs the tokens of service accounts
}

// Process is a control plane that was started. Its methods are safe for
// concurrent use.
type Process struct {
	cmd      *exec.Cmd
	grace    time.Duration // after SIGKILL
	lifeline io.Closer
	tail     *tail

	ready     chan struct{} // closed once endpoints is set
	endpoints Endpoints

	done chan struct{} // closed once the process has ended and err is set
	err  error

	mu   sync.Mutex
	told bool // to end, by Stop or Kill
}

// Start starts a control plane and returns when it is ready. If that fails, or
// ctx ends before, nothing is left running. After that ctx means nothing: a
// control plane that runs ends with Stop or Kill.
func Start(ctx context.Context, o Options) (*Process, error) {
	p, err := launch(o)
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	select {
	case <-p.ready:
		return p, nil
	case <-p.done:
		select {
		case <-p.ready:
			return p, nil // it died after that, which Done and Err say
		default:
			return nil, notStarted(p.err)
		}
	case <-ctx.Done():
		_ = p.Stop() // why we stop says more than how it went
		return nil, fmt.Errorf("starting the control plane: %w", context.Cause(ctx))
	}
}

// notStarted says that the start failed, once: the child says it of most errors itself.
func notStarted(err error) error {
	const prefix = "starting the control plane: "
	if strings.HasPrefix(err.Error(), prefix) {
		return err
	}
	return fmt.Errorf(prefix+"%w", err)
}

func launch(o Options) (*Process, error) {
	p := &Process{
		cmd:   exec.Command(o.Path, o.args()...), //nolint:noctx // ended by its standard input, so that it can clean up
		grace: killGrace,
		tail:  &tail{next: o.Log},
		ready: make(chan struct{}),
		done:  make(chan struct{}),
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = p.tail
	lifeline, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.lifeline = lifeline
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w; make build builds it", err)
		}
		return nil, err
	}
	progress := o.Progress
	if progress == nil {
		progress = func(Progress) {}
	}
	go func() {
		var once sync.Once
		reported := follow(stdout, progress, func(e Endpoints) {
			once.Do(func() { p.endpoints = e; close(p.ready) })
		})
		p.err = p.ended(reported, p.cmd.Wait())
		close(p.done)
	}()
	return p, nil
}

// ended makes the error of a process that is no more. What it reported says most,
// what it last wrote to standard error comes next.
func (p *Process) ended(reported, waited error) error {
	p.mu.Lock()
	told := p.told
	p.mu.Unlock()
	switch {
	case reported != nil:
		return reported
	case told:
		return nil
	}
	text := "the control plane ended by itself"
	if waited != nil {
		text = "the control plane died: " + waited.Error()
	}
	if last := p.tail.text(); last != "" {
		text += "; its last words:\n" + last
	}
	return errors.New(text)
}

// Endpoints says where the control plane can be reached.
func (p *Process) Endpoints() Endpoints { return p.endpoints }

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says why the process ended: nil before Done, and after Stop or Kill.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop has the control plane clean up and end, and returns when it has. A process that
// ended before is stopped. The error has what went wrong on the way.
func (p *Process) Stop() error {
	p.tell()
	_ = p.lifeline.Close() // closed already: the process has ended, or is about to
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		return errors.Join(fmt.Errorf("stopping the control plane: not done within %s; it was killed", stopGrace), p.Kill())
	}
	if p.err != nil {
		return fmt.Errorf("stopping the control plane: %w", p.err)
	}
	return nil
}

// Kill ends the process at once, as a crash would, and returns when it has ended, or an
// error if it has not after half a minute. A temporary data directory stays until the next
// start on this machine.
func (p *Process) Kill() error {
	p.tell()
	// The group, should the child ever have children. An error means that no process is
	// left to kill.
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("killing the control plane: process %d has not ended within %s, or another process has its output open", p.Pid(), p.grace)
	}
}

func (p *Process) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = true
}
