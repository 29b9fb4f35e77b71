// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanechild"
)

// Deadline is how long tests wait for what must come. It is no measure of how long
// anything takes: machines that test are slow and shared.
const Deadline = 2 * time.Minute

// Options says what the control plane is to have.
type Options struct {
	Nodes       int
	NoScheduler bool
	// Restartable keeps the state on disk and the port, so that Kill and Restart
	// work.
	Restartable bool
}

// Cluster is a running control plane.
type Cluster struct {
	Config     *rest.Config // of an administrator
	Kubeconfig string       // a file with the same
	Client     *client.Client
	Ready      controlplanechild.Line

	options controlplanechild.Options
	child   *controlplanechild.Child
	dir     string
}

// Start starts a control plane that ends with the test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	skip(t)
	c, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short leaves out")
	}
}

func start(o Options) (*Cluster, error) {
	binary, err := Binary("setpoint-controlplane", "SETPOINT_CONTROLPLANE_BIN")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "setpoint-test-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	c.options = controlplanechild.Options{Binary: binary, Nodes: o.Nodes, NoScheduler: o.NoScheduler, Kubeconfig: c.Kubeconfig}
	if o.Restartable {
		c.options.DataDir = filepath.Join(dir, "data")
	}
	if err := c.run(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return c, nil
}

func (c *Cluster) run() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	if c.child, err = controlplanechild.Start(ctx, c.options); err != nil {
		return err
	}
	c.Ready = c.child.Ready
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.Client, err = client.New(c.Config)
	return err
}

func (c *Cluster) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	err := c.child.Stop(ctx)
	if removed := os.RemoveAll(c.dir); err == nil {
		err = removed
	}
	return err
}

// Kill ends the control plane without warning, as SIGKILL does. It must be
// Restartable.
func (c *Cluster) Kill() { c.child.Kill() }

// Restart starts a control plane that was killed again, with its state and at its
// address.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	if c.options.DataDir == "" {
		t.Fatal("restarting a control plane that is not Restartable")
	}
	address := c.Ready.Servers[0]
	if _, err := fmt.Sscanf(address[strings.LastIndexByte(address, ':')+1:], "%d", &c.options.Port); err != nil {
		t.Fatalf("reading the port of %s: %v", address, err)
	}
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
}

// Namespace makes a namespace for one test. It is not deleted: the control plane
// ends with the tests.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ns, err := client.For[*corev1.Namespace](c.Client).Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// Kubectl runs the real kubectl against the cluster and returns what it printed.
func (c *Cluster) Kubectl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	binary, err := Binary("kubectl", "KUBECTL")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Deadline)
	defer cancel()
	command := exec.CommandContext(ctx, binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.dir)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Binary returns the path of one of the project's binaries, or an error that says
// how to build it.
func Binary(name, variable string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		dir, err := os.Getwd()
		if err != nil {
			return "", err
		}
		for path = filepath.Join(dir, "bin", name); !exists(path); path = filepath.Join(dir, "bin", name) {
			if filepath.Dir(dir) == dir {
				return "", fmt.Errorf("there is no bin/%s above this folder: run \"make build kubectl\", or name it in %s", name, variable)
			}
			dir = filepath.Dir(dir)
		}
	}
	if !exists(path) {
		return "", fmt.Errorf("%s=%s: there is no such file: run \"make build kubectl\"", variable, path)
	}
	return path, nil
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// The control planes that the tests of a process share, by their options.
var (
	sharedMu sync.Mutex
	shared   = map[Options]*Cluster{}
)

// Shared returns a control plane that all tests of the process share. TestMain
// must call [Main], which ends it.
func Shared(t testing.TB, o Options) *Cluster {
	t.Helper()
	skip(t)
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if c := shared[o]; c != nil {
		return c
	}
	c, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	shared[o] = c
	return c
}

// Main runs the tests of a package and ends the control planes that they shared.
func Main(m *testing.M) int {
	code := m.Run()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	for _, c := range shared {
		if err := c.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the shared control plane:", err)
			code = max(code, 1)
		}
	}
	return code
}
