// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/internal/child"
	"github.com/setpoint-io/setpoint/internal/cli"
)

// commandGrace is how long a command may go on without a control plane.
const commandGrace = 10 * time.Second

// command is what "setpoint up -- COMMAND" runs in the cluster.
//
// At a terminal it shares our process group, so that it may read from the terminal
// and a Ctrl-C reaches it. Elsewhere it has one of its own, so that a signal can be
// passed on to all that it has started.
type command struct {
	w       *cli.World
	args    []string
	running atomic.Bool

	mu      sync.Mutex // held while the process starts
	process *os.Process
}

func newCommand(w *cli.World, args []string) *command { return &command{w: w, args: args} }

// run runs the command and returns its end: nil, or a cli.StatusError. The signal that
// ends ctx is passed on. A control plane that dies takes the command with it.
func (c *command) run(ctx context.Context, kubeconfig string, plane *child.Process) error {
	cmd := c.build(kubeconfig)
	started, ended := make(chan error, 1), make(chan error, 1)
	c.running.Store(true)
	defer c.running.Store(false)
	go func() {
		// The kernel signals the child when the thread that started it ends, see
		// dieWithParent. This one stays until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.start(cmd)
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("running %s: %w", c.args[0], err)
	}

	asked, dead := ctx.Done(), plane.Done()
	var (
		failure error
		late    <-chan time.Time
	)
	for {
		select {
		case err := <-ended:
			if failure != nil {
				return failure
			}
			return exitStatus(err)
		case <-asked:
			asked = nil
			if s, ok := cli.SignalOf(ctx); ok {
				c.signal(s)
			}
		case <-dead:
			dead = nil
			failure = fmt.Errorf("the control plane ended while %s ran: %w", c.args[0], plane.Err())
			c.signal(syscall.SIGTERM)
			late = time.After(commandGrace)
		case <-late:
			c.signal(syscall.SIGKILL)
		}
	}
}

// start starts the process. A signal that comes meanwhile waits until there is a process to send it to: without that,
// a second Ctrl-C right after the start would end setpoint and leave the command alone.
func (c *command) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	c.process = cmd.Process
	return nil
}

func (c *command) build(kubeconfig string) *exec.Cmd {
	cmd := exec.Command(c.args[0], c.args[1:]...) //nolint:noctx // it gets signals, and may take its time
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.w.Stdin, c.w.Stdout, c.w.Stderr
	// The second variable is that of package setpointtest: go test runs in this cluster, too.
	cmd.Env = append(slices.Clone(c.w.Environ), "KUBECONFIG="+kubeconfig, "SETPOINT_TEST_KUBECONFIG="+kubeconfig)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !c.w.Interactive}
	dieWithParent(cmd.SysProcAttr)
	return cmd
}

// signal sends a signal to the command, and to all of its group if it has one. An
// error means that it has ended.
func (c *command) signal(s os.Signal) {
	c.mu.Lock()
	process := c.process
	c.mu.Unlock()
	if process == nil {
		return
	}
	if number, ok := s.(syscall.Signal); ok && !c.w.Interactive {
		_ = syscall.Kill(-process.Pid, number)
		return
	}
	_ = process.Signal(s)
}

// exitStatus turns the end of a command into this program's.
func exitStatus(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.StatusError(cli.SignalStatus(status.Signal()))
	}
	return cli.StatusError(exit.ExitCode())
}
