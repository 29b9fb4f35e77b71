// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

func TestTheClusterThatTheEnvironmentNamesIsUsed(t *testing.T) {
	cluster := Cluster(t)
	t.Setenv(Variable, cluster.Kubeconfig)
	named, err := first(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if named.Config.Host != cluster.Config.Host || named.Kubeconfig != cluster.Kubeconfig {
		t.Errorf("connected to %s, want %s", named.Config.Host, cluster.Config.Host)
	}
	t.Setenv(Variable, filepath.Join(t.TempDir(), "none"))
	if _, err := first(t.Context()); err == nil || !strings.Contains(err.Error(), "$"+Variable) {
		t.Errorf("without the file: %v, want that the variable is named", err)
	}
}

// isChild is set in the environment of a process that a test kills.
const isChild = "SETPOINTTEST_CHILD"

func TestAClusterEndsWithItsProcessEvenOneThatIsKilled(t *testing.T) {
	if os.Getenv(isChild) != "" {
		fmt.Println("kubeconfig", Cluster(t).Kubeconfig)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	skipShort(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$") //nolint:gosec // this program
	child.Env = append(child.Environ(), isChild+"=1")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	var kubeconfig string
	for lines := bufio.NewScanner(stdout); kubeconfig == "" && lines.Scan(); {
		kubeconfig, _ = strings.CutPrefix(lines.Text(), "kubeconfig ")
		if kubeconfig == lines.Text() {
			kubeconfig = ""
		}
	}
	cluster, err := connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.Namespace](cluster.Client).Get(t.Context(), object.Key{Name: "default"}); err != nil {
		t.Fatal(err)
	}

	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the cluster of the killed process has ended", func() error {
		_, err := client.For[*corev1.Namespace](cluster.Client).Get(t.Context(), object.Key{Name: "default"})
		if !client.Unreachable(err) {
			return fmt.Errorf("the server answers: %w", err)
		}
		if _, err := os.Stat(kubeconfig); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("its files are there: %w", err)
		}
		return nil
	})
}
