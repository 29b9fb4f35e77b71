// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// clusters lends clusters of "setpoint up" to the scripts of a test. Scripts that name the same flags get the same cluster, so
// that a control plane starts once for all of them. Its methods are safe for concurrent use.
type clusters struct {
	t *testing.T

	mu      sync.Mutex
	byFlags map[string]*lentCluster
}

// lentCluster is a cluster of "setpoint up" for several scripts.
type lentCluster struct {
	turn       sync.Mutex // a script that borrows with -alone holds it until it ends
	start      sync.Once
	err        error
	kubeconfig string

	mu   sync.Mutex
	left []string // the namespaces of scripts that have ended, which are being deleted
}

// lendClusters returns a lender whose clusters stop when t ends.
func lendClusters(t *testing.T) *clusters {
	return &clusters{t: t, byFlags: map[string]*lentCluster{}}
}

// lentAlone is the flag of the command borrow with which no other script has the cluster at the same time.
const lentAlone = "-alone"

// borrow [-alone] FLAG... gives the script the cluster that "setpoint up FLAG..." runs. The script gets a namespace, $NS, which is
// called "script-" and its name, and a kubeconfig, $KUBECONFIG, with that namespace. The namespace is deleted when the script ends.
//
// With -alone the script shares a cluster with those that also borrow with -alone and with the same flags. One of them runs
// at a time, after the namespaces of the earlier ones have gone. Such a script may do what other scripts would notice, such
// as a drain of a node. At its end it has to undo what lies outside of its namespace.
func (c *clusters) borrow(ts *testscript.TestScript, neg bool, flags []string) {
	alone := len(flags) > 0 && flags[0] == lentAlone
	key := strings.Join(flags, " ")
	if alone {
		flags = flags[1:]
	}
	if neg || len(flags) == 0 {
		ts.Fatalf("usage: borrow [-alone] FLAG..., with flags of setpoint up")
	}
	c.mu.Lock()
	cluster := c.byFlags[key]
	if cluster == nil {
		cluster = &lentCluster{}
		c.byFlags[key] = cluster
	}
	c.mu.Unlock()
	if alone {
		cluster.turn.Lock()
		ts.Defer(cluster.turn.Unlock)
	}
	cluster.start.Do(func() { cluster.kubeconfig, cluster.err = clusterUp(c.t, flags) })
	ts.Check(cluster.err)
	if alone {
		ts.Check(cluster.awaitGone())
	}
	ts.Check(cluster.enter(ts))
}

// enter creates the namespace and the kubeconfig of a script.
func (c *lentCluster) enter(ts *testscript.TestScript) error {
	namespace := filepath.Base(ts.Getenv("WORK"))
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		return err
	}
	own := filepath.Join(ts.Getenv("WORK"), "kubeconfig")
	if err := os.WriteFile(own, text, 0o600); err != nil { //nolint:gosec // in the folder of the script
		return err
	}
	ts.Setenv("KUBECONFIG", own)
	ts.Setenv("NS", namespace)
	if err := kubectl(own, "create", "namespace", namespace); err != nil {
		return err
	}
	ts.Defer(func() {
		if err := kubectl(c.kubeconfig, "delete", "namespace", namespace, "--wait=false"); err != nil {
			ts.Logf("[the namespace of the script stays: %v]", err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.left = append(c.left, "namespace/"+namespace)
	})
	return cmp.Or(
		kubectl(own, "config", "set-context", "--current", "--namespace", namespace),
		kubectl(own, "wait", "--for=create", "serviceaccount/default", "--timeout=60s"),
	)
}

// awaitGone waits until the namespaces of earlier scripts have gone.
func (c *lentCluster) awaitGone() error {
	c.mu.Lock()
	left := c.left
	c.left = nil
	c.mu.Unlock()
	if len(left) == 0 {
		return nil
	}
	return kubectl(c.kubeconfig, append([]string{"wait", "--for=delete", "--timeout=60s"}, left...)...)
}

// kubectl runs kubectl with a kubeconfig.
func kubectl(kubeconfig string, args ...string) error {
	path, err := controlplanetest.Binary("kubectl")
	if err != nil {
		return err
	}
	if out, err := exec.Command(path, append([]string{"--kubeconfig", kubeconfig}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// unwanted is what no cluster may log, even with -v: panics, data races, keys and tokens.
var unwanted = regexp.MustCompile(`panic|DATA RACE|PRIVATE KEY|eyJ`)

// clusterUp runs "setpoint up" with flags until the test ends, and returns its kubeconfig. The cluster is one for a command,
// cat, that ends when this process does, however that is.
func clusterUp(t *testing.T, flags []string) (kubeconfig string, err error) {
	controlplane, err := controlplanetest.Binary("setpoint-controlplane")
	if err != nil {
		return "", err
	}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", err
	}
	kubeconfig = filepath.Join(dir, "kubeconfig")
	up := exec.Command("setpoint", append(append([]string{"up", "--kubeconfig", kubeconfig}, flags...), "--", "cat")...)
	up.Env = append(up.Environ(), "SETPOINT_CONTROLPLANE_BIN="+controlplane, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	up.Stderr = log
	lifeline, err := up.StdinPipe()
	if err == nil {
		err = up.Start()
	}
	if err != nil {
		return "", errors.Join(err, log.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	stopped := func(grace time.Duration) error {
		_ = lifeline.Close()
		select {
		case err := <-ended:
			return err
		case <-time.After(grace):
			return errors.Join(fmt.Errorf("it did not stop within %s", grace), up.Process.Kill())
		}
	}
	t.Cleanup(func() {
		err := stopped(deadline)
		text, readErr := os.ReadFile(log.Name())
		if err = errors.Join(err, readErr, log.Close()); err != nil || unwanted.Match(text) {
			t.Errorf("setpoint up %s ended with %v and logged\n%s", strings.Join(flags, " "), err, text)
		}
	})
	for end := time.Now().Add(deadline); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(kubeconfig); err == nil {
			return kubeconfig, nil
		}
		select {
		case err := <-ended:
			ended <- err
			return "", fmt.Errorf("setpoint up %s ended before it was ready: %w", strings.Join(flags, " "), err)
		default:
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("setpoint up %s was not ready within %s", strings.Join(flags, " "), deadline)
		}
	}
}
