// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// The tests of the command live here rather than beside it: every test binary
// of this module takes long to link, for it contains all of Kubernetes.

var binaryDir string

// binary is the path of setpoint-controlplane: that of the environment, or one
// built now.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("SETPOINT_CONTROLPLANE_BIN"); path != "" {
		return path, nil
	}
	var err error
	if binaryDir, err = os.MkdirTemp("", "setpoint-bin-"); err != nil {
		return "", err
	}
	path := filepath.Join(binaryDir, "setpoint-controlplane")
	out, err := exec.Command("go", "build", "-o", path, "./cmd/setpoint-controlplane").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func removeBuiltBinary() {
	if binaryDir != "" {
		_ = os.RemoveAll(binaryDir) // in the temporary directory anyway
	}
}

// line is a line of the protocol, as its document names the fields.
type line struct {
	State, Component, Kubeconfig, DataDir, CAFile, CAKeyFile, ServiceAccountKeyFile, Reason, Error, Elapsed string
	Servers                                                                                                 []string

	text string // as it is printed
}

// child is a running setpoint-controlplane.
type child struct {
	t        *testing.T
	cmd      *exec.Cmd
	tmp      string // its temporary directory
	lifeline io.Closer
	lines    chan line
	stderr   strings.Builder
	ended    chan error
}

func startBinary(t *testing.T, tmp string, args ...string) *child {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), deadline)
	c := &child{t: t, tmp: tmp, cmd: exec.CommandContext(ctx, path, args...), lines: make(chan line, 100), ended: make(chan error, 1)}
	c.cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	c.cmd.Stderr = &c.stderr
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.lifeline, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		defer close(c.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			var l line
			if err := json.Unmarshal(s.Bytes(), &l); err != nil {
				t.Errorf("standard output has a line that is not JSON: %q", s.Text())
				continue
			}
			l.text = s.Text()
			c.lines <- l
		}
		c.ended <- c.cmd.Wait()
	}()
	t.Cleanup(cancel)
	return c
}

// ready waits for the last "ready" and returns it.
func (c *child) ready() line {
	c.t.Helper()
	for l := range c.lines {
		if l.State == "ready" && l.Component == "" {
			return l
		}
	}
	c.t.Fatalf("it ended before it was ready: %v\n%s", <-c.ended, &c.stderr)
	return line{}
}

// end waits for the process and returns the lines that were left, and its exit
// status.
func (c *child) end() ([]line, int) {
	c.t.Helper()
	var rest []line
	for l := range c.lines {
		rest = append(rest, l)
	}
	err := <-c.ended
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return rest, c.cmd.ProcessState.ExitCode()
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) checkNothingLeft() {
	c.t.Helper()
	left, err := os.ReadDir(c.tmp)
	if err != nil || len(left) > 0 {
		c.t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

func TestCommandReportsItsWayToReadyAndStopsOnSignal(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "my.kubeconfig")
	c := startBinary(t, t.TempDir(), "--kubeconfig", kubeconfig, "--nodes", "1", "--feature-gates", "MutableCSINodeAllocatableCount=true")
	var steps []string
	var ready line
	printed := ""
	for l := range c.lines {
		printed += l.text + "\n"
		if l.Component == "" {
			ready = l
			break
		}
		if l.Elapsed == "" {
			t.Errorf("%v has no elapsed time", l)
		}
		steps = append(steps, l.Component+" "+l.State)
	}
	want := "etcd starting, etcd ready, kube-apiserver starting, kube-scheduler starting, kube-apiserver ready, kube-scheduler ready, nodes starting, nodes ready"
	if got := strings.Join(steps, ", "); got != want {
		t.Errorf("the steps were %q, want %q", got, want)
	}
	for _, b := range documenttest.Blocks(t) {
		if missing := documenttest.Missing(b.Text, printed); missing != "" {
			t.Errorf("%s shows %q; printed is\n%s", b, missing, printed)
		}
	}
	if ready.State != "ready" || ready.Kubeconfig != kubeconfig || len(ready.Servers) != 1 || ready.Elapsed == "" {
		t.Fatalf("the last line before it serves is %+v\n%s", ready, &c.stderr)
	}
	if text, err := os.ReadFile(kubeconfig); err != nil || !strings.Contains(string(text), "# written by setpoint-controlplane, process ") {
		t.Errorf("the kubeconfig does not name its process (%v)", err)
	}
	t.Log("ready after", ready.Elapsed)
	for _, file := range []string{ready.CAFile, ready.CAKeyFile, ready.ServiceAccountKeyFile, filepath.Join(ready.DataDir, markerFile)} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Errorf("the cluster has the nodes %v, %v, want one", nodes, err)
	}
	if metrics := get(t, config, "/metrics"); !strings.Contains(metrics, `kubernetes_feature_enabled{name="MutableCSINodeAllocatableCount"`) {
		t.Error("the API server does not know the feature gate")
	}

	c.signal(syscall.SIGINT)
	rest, status := c.end()
	if status != 0 || len(rest) != 2 || rest[0].State != "stopping" || rest[0].Reason != "interrupt" || rest[1].State != "stopped" {
		t.Errorf("after the signal: %+v with status %d\n%s", rest, status, &c.stderr)
	}
	if s := c.stderr.String(); s != "" {
		t.Errorf("standard error is not quiet: %s", s)
	}
	if _, err := os.Stat(kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig is left: %v", err)
	}
	c.checkNothingLeft()
}

func get(t *testing.T, config *rest.Config, path string) string {
	t.Helper()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer h.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestCommandEndsWithItsParent(t *testing.T) {
	c := startBinary(t, t.TempDir(), "--lifeline")
	c.ready()
	c.signal(syscall.SIGINT) // of the terminal, and for the parent to act on
	if err := c.lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	rest, status := c.end()
	if status != 0 || len(rest) != 2 || rest[0].Reason != "end of standard input" || rest[1].State != "stopped" {
		t.Errorf("after the end of its input: %+v with status %d\n%s", rest, status, &c.stderr)
	}
	c.checkNothingLeft()
}

func TestCommandThatWasKilledIsCleanedUpAfter(t *testing.T) {
	tmp := t.TempDir()
	c := startBinary(t, tmp)
	c.ready()
	c.signal(syscall.SIGKILL)
	c.end()
	if left, err := os.ReadDir(tmp); err != nil || len(left) == 0 {
		t.Fatalf("the killed process left %v, %v; the test needs something to clean", left, err)
	}
	sweep := startBinary(t, tmp)
	sweep.ready()
	sweep.signal(syscall.SIGTERM)
	if _, status := sweep.end(); status != 0 {
		t.Errorf("status %d\n%s", status, &sweep.stderr)
	}
	sweep.checkNothingLeft()
}

func TestCommandStopsWhileItStarts(t *testing.T) {
	c := startBinary(t, t.TempDir())
	for l := range c.lines {
		if l.Component == "kube-apiserver" {
			break
		}
	}
	c.signal(syscall.SIGTERM)
	rest, status := c.end()
	if status != 0 || len(rest) == 0 || rest[len(rest)-1].State != "stopped" {
		t.Errorf("after the signal: %+v with status %d\n%s", rest, status, &c.stderr)
	}
	c.checkNothingLeft()
}

func TestCommandEndsAtOnceOnSecondSignal(t *testing.T) {
	c := startBinary(t, t.TempDir())
	config, err := clientcmd.BuildConfigFromFlags("", c.ready().Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	hang(t, config) // so that the first stop does not end before the second
	c.signal(syscall.SIGINT)
	if l := <-c.lines; l.State != "stopping" {
		t.Fatalf("after the first signal: %+v", l)
	}
	c.signal(syscall.SIGTERM)
	if rest, status := c.end(); status != 143 || len(rest) != 0 {
		t.Errorf("after the second signal: %+v with status %d, want 143", rest, status)
	}
}

func TestCommandReportsFailure(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown feature gate": {[]string{"--feature-gates", "NoSuchGate=true"}, "NoSuchGate"},
		"not its directory":    {[]string{"--data-dir", "."}, "choose an empty or a new directory"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startBinary(t, t.TempDir(), c.args...)
			lines, status := p.end()
			if status != 1 || len(lines) == 0 || lines[len(lines)-1].State != "failed" || !strings.Contains(lines[len(lines)-1].Error, c.says) {
				t.Errorf("it reported %+v with status %d, want failed with %q and status 1", lines, status, c.says)
			}
			if !strings.Contains(p.stderr.String(), c.says) {
				t.Errorf("standard error does not say %q: %s", c.says, &p.stderr)
			}
			p.checkNothingLeft()
		})
	}
}

func TestCommandRefusesWrongFlags(t *testing.T) {
	for _, args := range []string{"--nodes=-1", "--servers=0", "--log-format=xml", "--feature-gates=A=maybe", "--no-such-flag", "argument", "-v=99"} {
		t.Run(args, func(t *testing.T) {
			c := startBinary(t, t.TempDir(), args)
			lines, status := c.end()
			if status != 2 || len(lines) != 0 || !strings.Contains(c.stderr.String(), "--help") {
				t.Errorf("it reported %+v with status %d and %q", lines, status, &c.stderr)
			}
		})
	}
}
