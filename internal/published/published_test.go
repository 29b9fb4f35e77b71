// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package published

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someKubeconfig = `apiVersion: v1
kind: Config
clusters:
- {name: setpoint, cluster: {server: "https://127.0.0.1:1"}}
`

// written returns the path of a new file with this text.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A lock is the open file's: two of one process are to each other as those of two processes.
func TestAKubeconfigBelongsToTheProcessThatWroteIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := Claim(path); err != nil {
		t.Fatal(err)
	}
	first, err := Write([]byte(someKubeconfig), path, "setpoint up")
	if err != nil {
		t.Fatal(err)
	}
	if err := Claim(path); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "process ") {
		t.Errorf("claiming the file of a process that runs: %v", err)
	}
	// A process that claimed it before the first one wrote it finds out when it writes itself.
	if _, err := Write([]byte(someKubeconfig), path, "setpoint up"); !errors.Is(err, ErrInUse) {
		t.Errorf("writing over the file of a process that runs: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("there is %v, want the kubeconfig alone (%v)", left, err)
	}
	if err := first.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAKubeconfigOfAProcessThatEndedIsReplaced(t *testing.T) {
	path := written(t, "kubeconfig", someKubeconfig+"# written by setpoint up, process 1\n")
	if err := Claim(path); err != nil {
		t.Fatal(err)
	}
	p, err := Write([]byte(someKubeconfig), path, "setpoint up")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
}

func TestAFileThatTookItsPlaceStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	p, err := Write([]byte(someKubeconfig), path, "setpoint up")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(written(t, "other", someKubeconfig), path); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("what somebody put there is gone: %v", err)
	}
}
