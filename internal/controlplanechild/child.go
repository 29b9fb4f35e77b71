// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanechild

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Options says how to run the control plane. Only Binary is needed.
type Options struct {
	Binary       string // path of setpoint-controlplane
	DataDir      string // kept there; "" is temporary
	Port         int    // 0 is a free one
	Servers      int    // 0 is one
	Nodes        int
	NoScheduler  bool
	FeatureGates string
	Kubeconfig   string // written once all is ready; "" is in the data directory
	Verbosity    int
	// Stderr takes what the child says to people; nil keeps the end of it for
	// errors.
	Stderr io.Writer
	// Progress is called with each line of the protocol, by one goroutine.
	Progress func(Line)
}

// Line is a line of the protocol. The fields are described where the protocol is.
type Line struct {
	State                 string   `json:"state"`
	Component             string   `json:"component"`
	Reason                string   `json:"reason"`
	Error                 string   `json:"error"`
	Elapsed               string   `json:"elapsed"`
	Kubeconfig            string   `json:"kubeconfig"`
	Servers               []string `json:"servers"`
	DataDir               string   `json:"dataDir"`
	CAFile                string   `json:"caFile"`
	ServiceAccountKeyFile string   `json:"serviceAccountKeyFile"`
}

// Child is a running control plane.
type Child struct {
	// Ready is the line that said that everything is.
	Ready Line

	command  *exec.Cmd
	lifeline io.Closer
	stderr   *tail
	ended    chan struct{}
	stopOnce sync.Once

	mu      sync.Mutex
	stopped bool  // a stop was asked for
	failure error // of the child; valid once ended is closed
}

// Start runs the control plane and returns once it is ready. When ctx ends first,
// the child is stopped.
func Start(ctx context.Context, o Options) (*Child, error) {
	c := &Child{stderr: &tail{}, ended: make(chan struct{})}
	c.command = exec.Command(o.Binary, o.args()...)
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.command.Stderr = c.stderr
	if o.Stderr != nil {
		c.command.Stderr = io.MultiWriter(o.Stderr, c.stderr)
	}
	lifeline, err := c.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	c.lifeline = lifeline
	stdout, err := c.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	ready := make(chan Line, 1)
	go c.follow(stdout, o.Progress, ready)
	select {
	case c.Ready = <-ready:
		return c, nil
	case <-c.ended:
		return nil, fmt.Errorf("starting the control plane: %w", c.Err())
	case <-ctx.Done():
		err := c.Stop(context.WithoutCancel(ctx))
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", context.Cause(ctx)), err)
	}
}

func (o *Options) args() []string {
	args := []string{"--lifeline"}
	add := func(flag, value string) {
		if value != "" && value != "0" {
			args = append(args, flag, value)
		}
	}
	add("--data-dir", o.DataDir)
	add("--port", strconv.Itoa(o.Port))
	add("--servers", strconv.Itoa(o.Servers))
	add("--nodes", strconv.Itoa(o.Nodes))
	add("--feature-gates", o.FeatureGates)
	add("--kubeconfig", o.Kubeconfig)
	add("--verbosity", strconv.Itoa(o.Verbosity))
	if o.NoScheduler {
		args = append(args, "--no-scheduler")
	}
	return args
}

// follow reads the protocol to its end and waits for the child.
func (c *Child) follow(stdout io.Reader, progress func(Line), ready chan<- Line) {
	defer close(c.ended)
	said := ""
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var line Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			said = fmt.Sprintf("it wrote what is no line of its protocol: %.200q; is it another version? Build both with \"make build\"", lines.Text())
			continue
		}
		if progress != nil {
			progress(line)
		}
		switch {
		case line.State == "failed":
			said = line.Error
		case line.State == "ready" && line.Component == "":
			ready <- line
		}
	}
	err := c.command.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case said != "":
		c.failure = errors.New(said)
	case err != nil:
		c.failure = fmt.Errorf("the control plane ended: %w%s", err, c.stderr)
	case !c.stopped:
		c.failure = fmt.Errorf("the control plane ended by itself%s", c.stderr)
	}
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.ended }

// Err returns why the child ended, once it has, or nil if it was asked to.
func (c *Child) Err() error {
	select {
	case <-c.ended:
	default:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// Stop ends the child cleanly and waits for that. When ctx ends first, the child
// is killed.
func (c *Child) Stop(ctx context.Context) error {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.stopOnce.Do(func() { _ = c.lifeline.Close() })
	select {
	case <-c.ended:
		return c.Err()
	case <-ctx.Done():
		c.Kill()
		return fmt.Errorf("stopping the control plane: it was killed: %w", context.Cause(ctx))
	}
}

// Kill ends the child at once and waits for that.
func (c *Child) Kill() {
	_ = c.command.Process.Kill()
	<-c.ended
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailMost = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > tailMost {
		t.text = append(t.text[:0], t.text[len(t.text)-tailMost:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	if text == "" {
		return ""
	}
	return "; it said last:\n" + text
}
