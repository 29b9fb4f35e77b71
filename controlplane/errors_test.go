// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/published"
)

// plenty is a disk with room.
func plenty(string) (uint64, error) { return 1 << 40, nil }

// startThatFails starts with what the test gives, and returns the error. None
// of these starts gets as far as etcd.
func startThatFails(t *testing.T, opts Options, m machine) error {
	t.Helper()
	if m.now == nil {
		m.now = time.Now
	}
	if m.freeBytes == nil {
		m.freeBytes = plenty
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cp, err := start(ctx, opts, m)
	if err == nil {
		stopForTest(t, cp)
		t.Fatal("it started")
	}
	return err
}

// checkError checks the error's kind, and that its text says what is wrong
// and what to do.
func checkError(t *testing.T, err, kind error, says ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("the error is %v, want %v", err, kind)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error %q does not say %q", err, s)
		}
	}
}

func TestPortInUseIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	err = startThatFails(t, Options{Port: port}, machine{})
	checkError(t, err, ErrPortInUse, fmt.Sprint(port), "choose another port")
}

func TestLockedDataDirectoryIsTold(t *testing.T) {
	cp := sharedControlPlane(t)
	err := startThatFails(t, Options{DataDir: cp.DataDir()}, machine{})
	checkError(t, err, ErrDataDirLocked, fmt.Sprint("process ", os.Getpid()), cp.DataDir(), "stop it first")
	if _, err := os.Stat(cp.KubeconfigFile()); err != nil {
		t.Errorf("the refused start disturbed the running one: %v", err)
	}
}

func TestDataDirectoryOfAnotherVersionIsRefused(t *testing.T) {
	for name, content := range map[string]string{
		"newer format":           `{"format":2,"kubernetes":"1.37","etcd":"3.7"}`,
		"newer Kubernetes":       `{"format":1,"kubernetes":"1.38","etcd":"3.7"}`,
		"Kubernetes of long ago": `{"format":1,"kubernetes":"1.35","etcd":"3.6"}`,
		"newer etcd":             `{"format":1,"kubernetes":"1.37","etcd":"3.8"}`,
		"etcd of long ago":       `{"format":1,"kubernetes":"1.37","etcd":"3.5"}`,
		"no versions":            `{"format":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, markerFile), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := startThatFails(t, Options{DataDir: dir}, machine{})
			checkError(t, err, ErrDataDirVersion, dir, "run the version that wrote it")
		})
	}
}

func TestDirectoryOfSomethingElseIsRefusedAndUntouched(t *testing.T) {
	for name, file := range map[string]string{"other files": "thesis.tex", "damaged marker": markerFile} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, file), []byte("\\documentclass"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := startThatFails(t, Options{DataDir: dir}, machine{})
			checkError(t, err, ErrNotDataDir, file, "directory")
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("the directory now holds %v, %v", entries, err)
			}
		})
	}
}

func TestFullDiskIsTold(t *testing.T) {
	full := func(string) (uint64, error) { return 20 << 20, nil }
	err := startThatFails(t, Options{DataDir: t.TempDir()}, machine{freeBytes: full})
	checkError(t, err, ErrDiskFull, "20 MB free", "160 MB", "free some space")
}

func TestWriteErrorOfFullDiskIsRecognized(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString("x")
	checkError(t, diskError(err), ErrDiskFull, "free some space")
}

func TestMissingPermissionIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // who may write everywhere, but not there
		if dir = "/sys/kernel"; runtime.GOOS != "linux" {
			t.Skip("root may write everywhere on this system")
		}
	}
	err := startThatFails(t, Options{DataDir: filepath.Join(dir, "data")}, machine{})
	checkError(t, err, fs.ErrPermission, dir, "choose a directory that you may write to")
}

func TestClockOutsideTheAuthoritysValidityIsTold(t *testing.T) {
	dir := t.TempDir()
	if _, err := openPKI(ownDir(t, dir), nil, time.Now); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		shift time.Duration
		says  string
	}{
		"before": {-24 * time.Hour, "set the clock right"},
		"after":  {authorityValidity + time.Hour, "to make a new authority"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openPKI(ownDir(t, dir), nil, func() time.Time { return time.Now().Add(c.shift) })
			checkError(t, err, ErrCertificateTime, filepath.Join(dir, "ca.crt"), c.says)
		})
	}
}

func TestHalfAnAuthorityIsTold(t *testing.T) {
	dir := t.TempDir()
	if _, err := openPKI(ownDir(t, dir), nil, time.Now); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	_, err := openPKI(ownDir(t, dir), nil, time.Now)
	checkError(t, err, fs.ErrNotExist, "ca.key", "restore the missing file")
}

func TestKubeconfigOfOtherClustersIsKept(t *testing.T) {
	const foreign = "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: https://example.com}\n"
	for name, content := range map[string]string{"other cluster": foreign, "no kubeconfig": "{not yaml", "no cluster": "apiVersion: v1\nkind: Config\n"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := startThatFails(t, Options{KubeconfigFile: file}, machine{})
			checkError(t, err, ErrForeignKubeconfig, file, "choose another file")
			if now, err := os.ReadFile(file); err != nil || string(now) != content {
				t.Errorf("the file is now %q, %v", now, err)
			}
		})
	}
}

// The lock on the file is the open file's: one of this process is to a start as one of another.
func TestKubeconfigOfAClusterThatRunsIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	const content = "apiVersion: v1\nkind: Config\nclusters:\n- name: setpoint\n  cluster: {server: https://127.0.0.1:1}\n"
	for _, program := range []string{"setpoint up", "setpoint-controlplane"} {
		running, err := published.Write([]byte(content), file, program)
		if err != nil {
			t.Fatal(err)
		}
		err = startThatFails(t, Options{KubeconfigFile: file}, machine{})
		checkError(t, err, published.ErrInUse, file, fmt.Sprintf("process %d wrote it", os.Getpid()), "name another file")
		if now, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(now), content) {
			t.Errorf("the file is now %q, %v", now, err)
		}
		if err := running.Remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestOtherFeatureGatesInTheSameProcessAreRefused(t *testing.T) {
	sharedControlPlane(t) // fixes the process's gates to the defaults
	err := startThatFails(t, Options{FeatureGates: map[string]bool{"AllAlpha": true}}, machine{})
	checkError(t, err, ErrFeatureGates, "the defaults", "AllAlpha=true", "one process for each set")
}

func TestImpossibleOptionsAreAllTold(t *testing.T) {
	err := startThatFails(t, Options{BindAddress: "localhost", APIServers: -1, Port: 70000}, machine{})
	for _, want := range []string{`"localhost" is not an IP address`, "-1 API servers", "port 70000"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
}

func TestAddressOfAnotherMachineIsTold(t *testing.T) {
	// From the range for documentation, RFC 5737: no machine has it.
	err := startThatFails(t, Options{BindAddress: "192.0.2.1"}, machine{})
	if !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("the error %q does not name the address", err)
	}
}
