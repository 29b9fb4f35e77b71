// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// namesake returns a command that starts the binary by a link with the name of a program of
// Kubernetes, as "setpoint assets" makes them.
func namesake(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), link, args...)
}

func TestUnderANameOfKubernetesTheCommandIsThatProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the binary, which takes long to build")
	}
	for _, c := range []struct {
		name, args     string
		status         int
		stdout, stderr string
	}{
		{"kube-apiserver", "--version", 0, `^Kubernetes v\d+\.\d+\.\d+`, `^$`},
		{"kube-apiserver", "--help", 0, `(?m)^ +--service-account-signing-key-file\b`, `^$`},
		{"kube-apiserver", "--nonsense", 1, `^$`, `^Error: unknown flag: --nonsense\n`},
		{"kube-apiserver", "more", 1, `^$`, `^Error: "kube-apiserver" does not take any arguments, got \["more"\]\n`},
		{"kube-apiserver", "--feature-gates=None=true", 1, `^$`, `unrecognized feature gate: None"\n`},
		{"kube-apiserver", "--nodes=3", 1, `^$`, `^Error: unknown flag: --nodes\n`},
		{"etcd", "--version", 0, `^etcd Version: 3\.\d+\.\d+\n`, `^$`},
		{"etcd", "--help", 0, `(?m)^ +--unsafe-no-fsync\b`, ``},
		{"etcd", "--nonsense", 2, ``, `flag provided but not defined: -nonsense`},
		{"etcd", "--listen-client-urls=http://127.0.0.1:0", 1, ``, `advertise client URLs are not set`},
		{"kubectl", "version --client", 0, `^Client Version: v\d+\.\d+\.\d+`, `^$`},
		{"kubectl", "--help", 0, `^kubectl controls the Kubernetes cluster manager\.`, `^$`},
		{"kubectl", "explode", 1, `^$`, `error: unknown command "explode" for "kubectl"`},
		{"setpoint-controlplane-2", "--version", 0, `^setpoint-controlplane version `, `^$`},
	} {
		t.Run(c.name+" "+c.args, func(t *testing.T) {
			t.Parallel()
			cmd := namesake(t, c.name, strings.Fields(c.args)...)
			cmd.Dir = t.TempDir()
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if status := cmd.ProcessState.ExitCode(); status != c.status {
				t.Errorf("it ended with status %d, want %d", status, c.status)
			}
			if !regexp.MustCompile(c.stdout).Match(stdout.Bytes()) {
				t.Errorf("standard output is %q, want %s", stdout.String(), c.stdout)
			}
			if !regexp.MustCompile(c.stderr).Match(stderr.Bytes()) {
				t.Errorf("standard error is %q, want %s", stderr.String(), c.stderr)
			}
		})
	}
}

// server is a running program of Kubernetes.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	output bytes.Buffer // read after ended
	ended  chan struct{}
}

func startServer(t *testing.T, name string, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: namesake(t, name, args...), ended: make(chan struct{})}
	s.cmd.Dir = t.TempDir()
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // see its ProcessState
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
	})
	return s
}

// answers waits until a URL has the status 200, and returns the answer.
func (s *server) answers(url string) string {
	s.t.Helper()
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as envtest, which knows no authority yet
	}}
	ctx, cancel := context.WithTimeout(s.t.Context(), deadline)
	defer cancel()
	for {
		text, err := ask(ctx, c, url)
		if err == nil {
			return text
		}
		select {
		case <-time.After(readyPoll):
		case <-s.ended:
			s.t.Fatalf("%s ended: %v\n%s", s.cmd, s.cmd.ProcessState, &s.output)
		case <-ctx.Done():
			s.t.Fatalf("%s does not answer at %s: %v", s.cmd, url, err)
		}
	}
}

func ask(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}

// terminate sends SIGTERM and returns how the process ended.
func (s *server) terminate() syscall.WaitStatus {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(deadline):
		s.t.Fatalf("%s does not end", s.cmd)
	}
	return s.cmd.ProcessState.Sys().(syscall.WaitStatus) //nolint:forcetypeassert // on Unix it is one
}

// freeAddress returns an address of this machine with a port that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestEtcdAndKubeAPIServerServeAndStopAsTheRealOnes starts both as envtest does, and reads what a
// user of etcd knows: its files, a port with TLS, a unix socket, and how it ends.
func TestEtcdAndKubeAPIServerServeAndStopAsTheRealOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane, which -short leaves out")
	}
	dir := t.TempDir()
	socket := "unix://" + filepath.Join(dir, "etcd.sock")
	secure := "https://" + freeAddress(t)
	startEtcd := func() *server {
		return startServer(t, "etcd", "--data-dir", filepath.Join(dir, "data"), "--unsafe-no-fsync", "--auto-tls",
			"--listen-client-urls", socket+","+secure, "--advertise-client-urls", secure, "--listen-peer-urls", "http://"+freeAddress(t))
	}
	etcd := startEtcd()
	if text := etcd.answers(secure + "/health"); !strings.Contains(text, `"health":"true"`) {
		t.Errorf("etcd answers %s", text)
	}
	for _, file := range []string{"member/snap/db", "member/wal/0000000000000000-0000000000000000.wal"} {
		if _, err := os.Stat(filepath.Join(dir, "data", file)); err != nil {
			t.Error(err)
		}
	}

	key := filepath.Join(dir, "sa.key")
	_, text, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	startAPI := func() (*server, string) {
		address := freeAddress(t)
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return startServer(t, "kube-apiserver", "--etcd-servers", socket, "--cert-dir", dir, "--bind-address", host, "--secure-port", port,
			"--service-account-issuer", "https://"+address, "--service-account-key-file", key, "--service-account-signing-key-file", key,
			"--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC", "--disable-admission-plugins", "ServiceAccount",
			"--token-auth-file", writeToken(t)), "https://" + address
	}
	api, url := startAPI()
	api.answers(url + "/readyz")
	kubectl := func(args ...string) string {
		t.Helper()
		cmd := namesake(t, "kubectl", append(args, "--server", url, "--token", "secret", "--insecure-skip-tls-verify", "--kubeconfig", os.DevNull)...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	if out := kubectl("create", "namespace", "kept"); out != "namespace/kept created\n" {
		t.Errorf("kubectl prints %q", out)
	}
	if status := api.terminate(); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("SIGTERM ended kube-apiserver with %#x, want status 0\n%s", status, &api.output)
	}
	// As etcd's own: it stops cleanly, and then ends by the signal.
	if status := etcd.terminate(); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("SIGTERM ended etcd with %#x, want that signal\n%s", status, &etcd.output)
	}

	etcd = startEtcd()
	etcd.answers(secure + "/health")
	api, url = startAPI()
	api.answers(url + "/readyz")
	if out := kubectl("get", "namespace", "kept", "--output", "name"); out != "namespace/kept\n" {
		t.Errorf("after a restart kubectl prints %q", out)
	}
}

// writeToken returns a file with the token "secret" of an administrator.
func writeToken(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("secret,admin,admin,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
