// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// startTimeout is for machines that are busy with other tests.
	startTimeout = 2 * time.Minute

	// stopTimeout bounds the stop of a cluster, which takes a second.
	stopTimeout = 30 * time.Second

	// killTimeout bounds the wait for a cluster that was killed.
	killTimeout = 10 * time.Second

	// shownOfLog is how many bytes of the end of its log an error shows.
	shownOfLog = 4096
)

// up is a running "setpoint up".
//
// Its command prints where the kubeconfig is once all is ready, and ends when its standard
// input does. The kernel closes that when this process ends, however it ends, and "setpoint
// up" stops everything after its command.
type up struct {
	cmd        *exec.Cmd
	lifeline   io.Closer
	log        *os.File // has no name any more
	kubeconfig string
	ended      chan struct{}
	err        error // of the process; set when ended is closed
}

var announce = []string{"--", "sh", "-c", `echo "$KUBECONFIG" && exec cat`}

// startUp starts a cluster with flags of "setpoint up" and returns when it is ready.
func startUp(ctx context.Context, flags []string) (*up, error) {
	path, err := findProgram()
	if err != nil {
		return nil, err
	}
	u := &up{ended: make(chan struct{})}
	// A file rather than a pipe, which would break before the process ends.
	if u.log, err = os.CreateTemp("", "setpointtest-*.log"); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	if err := os.Remove(u.log.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster: %w", err), u.log.Close())
	}
	u.cmd = exec.Command(path, append(append([]string{"up"}, flags...), announce...)...) //nolint:noctx // it outlives ctx, and ends with its standard input
	u.cmd.Stderr = u.log
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the tests
	kubeconfig, err := u.start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster: %w", err), u.log.Close())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	select {
	case line, ok := <-kubeconfig:
		if ok {
			u.kubeconfig = line
			return u, nil
		}
		select {
		case <-u.ended:
			err = u.err
		case <-ctx.Done(): // its output is closed, and it goes on
			err = errors.Join(context.Cause(ctx), u.stop())
		}
	case <-ctx.Done():
		err = errors.Join(context.Cause(ctx), u.stop())
	}
	return nil, errors.Join(fmt.Errorf("starting a cluster, by %s: %w; it said:\n%s", u.cmd, err, u.said()), u.log.Close())
}

// start starts the process. The channel has the first line that it prints, and is closed
// after it.
func (u *up) start() (<-chan string, error) {
	stdin, err := u.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := u.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	u.lifeline = stdin
	if err := u.cmd.Start(); err != nil {
		return nil, err
	}
	first := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		if lines.Scan() {
			first <- lines.Text()
		}
		close(first)
		_, _ = io.Copy(io.Discard, stdout)
		if u.err = u.cmd.Wait(); u.err == nil {
			u.err = errors.New("it ended by itself")
		}
		close(u.ended)
	}()
	return first, nil
}

// stop ends the cluster and returns when it has ended.
func (u *up) stop() error {
	_ = u.lifeline.Close() // the process may have ended
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-u.ended:
		return nil
	case <-timer.C:
		_ = syscall.Kill(-u.cmd.Process.Pid, syscall.SIGKILL)
	}
	timer.Reset(killTimeout)
	select {
	case <-u.ended:
		return fmt.Errorf("stopping the cluster: not done within %s; it was killed", stopTimeout)
	case <-timer.C:
		return fmt.Errorf("stopping the cluster: process %d was killed after %s, and its output is still open", u.cmd.Process.Pid, stopTimeout)
	}
}

// said is the end of what the process wrote to its standard error.
func (u *up) said() string {
	info, err := u.log.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(0, info.Size()-shownOfLog)
	text, err := io.ReadAll(io.NewSectionReader(u.log, from, info.Size()-from))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
