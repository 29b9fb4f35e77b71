// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// cluster is a control plane without controllers but that of service accounts.
type cluster struct {
	kubeconfig string
	dir        string
	programs   []*exec.Cmd
}

// patience is how long the control plane may take to start.
const patience = 2 * time.Minute

// startCluster starts the programs that the variables of the Makefile name.
func startCluster(ctx context.Context, dir string) (*cluster, error) {
	c := &cluster{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.start("SETPOINT_CONTROLPLANE_BIN", "--no-scheduler", "--data-dir", filepath.Join(dir, "data"), "--kubeconfig", c.kubeconfig); err != nil {
		return nil, err
	}
	deadline := time.After(patience)
	for {
		if _, err := os.Stat(c.kubeconfig); err == nil { // it is written when the server is ready
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-deadline:
			c.stop()
			return nil, fmt.Errorf("the control plane was not ready after %s", patience)
		case <-ctx.Done():
			c.stop()
			return nil, ctx.Err()
		}
	}
	if err := c.start("SETPOINT_BIN", "manager", "--kubeconfig", c.kubeconfig, "--leader-elect=false", "--controllers", "serviceaccount"); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// start starts a program whose path is in an environment variable.
func (c *cluster) start(variable string, args ...string) error {
	path := os.Getenv(variable)
	if path == "" {
		return fmt.Errorf("the environment variable %s is not set; run make conformance", variable)
	}
	program := exec.Command(path, args...) //nolint:noctx,gosec // stop ends it, in order; the Makefile names it
	if err := program.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	c.programs = append(c.programs, program)
	return nil
}

// stop ends the programs, the last one first.
func (c *cluster) stop() {
	for _, p := range slices.Backward(c.programs) {
		if err := p.Process.Signal(syscall.SIGTERM); err == nil || errors.Is(err, os.ErrProcessDone) {
			_ = p.Wait() // its exit status says nothing about the tests
		}
	}
	_ = os.RemoveAll(c.dir)
}
