// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"bytes"
	"io"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// managerProcess is a running "setpoint manager".
type managerProcess struct {
	cmd   *exec.Cmd
	lines *lineCounter
	ended chan struct{}
	err   error // after ended
}

// manage starts "setpoint manager" as a user does, and kills it with the test at
// the latest.
func manage(t *testing.T, cluster *controlplanetest.Cluster) *managerProcess {
	t.Helper()
	binary, err := controlplanetest.Binary("setpoint")
	if err != nil {
		t.Fatal(err)
	}
	m := &managerProcess{
		cmd: exec.Command(binary, "manager", "--kubeconfig", cluster.Kubeconfig, "--log-format", "text",
			"--secure-port", "0", "--leader-elect=false"), // one at a time, and no wait after each that is killed
		lines: &lineCounter{next: t.Output()},
		ended: make(chan struct{}),
	}
	m.cmd.Stderr = m.lines
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		m.err = m.cmd.Wait()
		close(m.ended)
	}()
	t.Cleanup(m.kill)
	return m
}

// kill sends SIGKILL and waits for the end.
func (m *managerProcess) kill() {
	_ = m.cmd.Process.Kill() // an error means that it has ended
	<-m.ended
}

// lineCounter counts lines of a log on their way.
type lineCounter struct {
	next  io.Writer
	count atomic.Int64
}

func (c *lineCounter) Write(b []byte) (int, error) {
	c.count.Add(int64(bytes.Count(b, []byte("\n"))))
	return c.next.Write(b)
}
