// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// TestDocuments runs the commands of the documents in a cluster that its scripts share. Each script
// has a namespace of its own, $NS, which is that of its kubeconfig. Documents also create objects
// without a namespace, so each run of the test has a new cluster.
func TestDocuments(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster, which -short leaves out")
	}
	cluster := setpointtest.Own(t)
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	runScripts(t, "testdata/documents", func(e *testscript.Env) error {
		e.Setenv("DOCS", docs)
		e.Setenv("FREE2", freePort(t))
		return inNamespace(e, cluster.Kubeconfig)
	})
}

// inNamespace gives a script a kubeconfig for a new namespace with its name, in which Pods can be created.
func inNamespace(e *testscript.Env, kubeconfig string) error {
	namespace := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	file := filepath.Join(e.WorkDir, "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil { //nolint:gosec // the path is the test's
		return err
	}
	e.Setenv("NS", namespace)
	e.Setenv("KUBECONFIG", file)
	for _, args := range []string{
		"create namespace " + namespace,
		"config set-context --current --namespace " + namespace,
		"wait --for=create serviceaccount/default --timeout=60s",
	} {
		cmd := exec.Command("sh", "-c", "kubectl "+args)
		cmd.Env = e.Vars
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", args, err, out)
		}
	}
	return nil
}
