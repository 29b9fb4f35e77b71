// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"bytes"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// managerProcess is a running "setpoint manager" or kube-controller-manager.
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
	// One at a time, and no wait after each that is killed.
	return startManager(t, "setpoint", "manager", "--kubeconfig", cluster.Kubeconfig, "--log-format", "text", "--secure-port", "0", "--leader-elect=false", autoscaling)
}

// startManager starts one of the binaries of managers, and kills it with the test at the
// latest.
func startManager(t *testing.T, binary string, args ...string) *managerProcess {
	t.Helper()
	path, err := controlplanetest.Binary(binary)
	if err != nil {
		t.Fatal(err)
	}
	m := &managerProcess{cmd: exec.Command(path, args...), lines: &lineCounter{next: t.Output()}, ended: make(chan struct{})}
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

// stop sends SIGTERM and waits for the end.
func (m *managerProcess) stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	<-m.ended
}

// kill sends SIGKILL and waits for the end.
func (m *managerProcess) kill() {
	_ = m.cmd.Process.Kill() // an error means that it has ended
	<-m.ended
}

// lineCounter keeps and counts the lines of a log on their way.
type lineCounter struct {
	next  io.Writer
	count atomic.Int64

	mu   sync.Mutex
	text bytes.Buffer
}

func (c *lineCounter) Write(b []byte) (int, error) {
	c.count.Add(int64(bytes.Count(b, []byte("\n"))))
	c.mu.Lock()
	c.text.Write(b)
	c.mu.Unlock()
	return c.next.Write(b)
}

// say reports whether the log contains a text.
func (c *lineCounter) say(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.text.Bytes(), []byte(text))
}
