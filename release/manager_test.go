// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/internal/documenttest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

const manifests = "../deploy/manager"

// inImage makes a program of an image ready to run, and returns what it will have said. The
// end of ctx is a SIGTERM.
// Where the test may, the program sees the files of the image alone and has the image's
// user, as in a container.
func inImage(ctx context.Context, root, program string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	path := filepath.Join(root, programs, program)
	attributes := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		path = "/" + programs + "/" + program
		attributes = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	said := &bytes.Buffer{}
	c := exec.CommandContext(ctx, path, args...)
	c.Dir, c.Stdout, c.Stderr, c.SysProcAttr = "/", said, said, attributes
	c.Env = []string{"PATH=/" + programs, "ZONEINFO=/" + zones}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute
	return c, said
}

// inRoot is how a program that inImage runs names a file of the image.
func inRoot(root, file string) string {
	if os.Geteuid() == 0 {
		return "/" + file
	}
	return filepath.Join(root, file)
}

// kubectlProgram is the kubectl that make has built.
func kubectlProgram() string {
	if program := os.Getenv("KUBECTL"); program != "" {
		return program
	}
	return filepath.Join("..", "bin", "kubectl")
}

// kubectl runs kubectl as administrator of a cluster.
func kubectl(t *testing.T, cluster *setpointtest.Environment, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), kubectlProgram(), append([]string{"--kubeconfig", cluster.Kubeconfig}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// accountConfig writes a kubeconfig of a service account, which the user of the image may
// read.
func accountConfig(t *testing.T, cluster *setpointtest.Environment, file, account string) {
	t.Helper()
	token := strings.TrimSpace(kubectl(t, cluster, "create", "token", account, "-n", "kube-system"))
	authority := cluster.Config.CAData
	if len(authority) == 0 {
		var err error
		if authority, err = os.ReadFile(cluster.Config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{name: u, user: {token: %s}}]\n",
		cluster.Config.Host, base64.StdEncoding.EncodeToString(authority), token)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
}

// inCheckout returns a function that runs a command of a document in the checkout, with kubectl as
// administrator of a cluster.
func inCheckout(t *testing.T, cluster *setpointtest.Environment, b documenttest.Block) func(command string) {
	t.Helper()
	program, err := filepath.Abs(kubectlProgram())
	if err != nil {
		t.Fatal(err)
	}
	return func(command string) {
		shell := exec.CommandContext(t.Context(), "sh", "-c", command)
		shell.Dir = ".."
		shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %s: %v\n%s", b, command, err, out)
		}
	}
}

// deployment is the one of the manifests.
func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n---\n"))
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(first, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// The manager of the image, with the arguments and the rights of the manifests, brings up
// the Deployment that the manifests hold.
func runsTheManager(t *testing.T, root string) {
	cluster := setpointtest.Own(t, "--controllers=serviceaccount-controller")
	setpointtest.Await(t, cluster.Client, object.Key{Namespace: "kube-system", Name: "default"}, "static Pods have an account",
		func(*corev1.ServiceAccount) bool { return true })
	for _, args := range [][]string{{"-k", manifests}, {"-f", filepath.Join(manifests, "static-pod.yaml")}} {
		said := kubectl(t, cluster, append([]string{"apply", "--dry-run=server"}, args...)...)
		if !strings.Contains(said, "created (server dry run)") || strings.Contains(said, "Warning") {
			t.Errorf("the server says of %s: %s", args[1], said)
		}
	}

	documented := documenttest.Blocks(t)[0]
	run := inCheckout(t, cluster, documented)
	run(documented.Commands()[0])
	accountConfig(t, cluster, filepath.Join(root, "kubeconfig"), "setpoint-manager")
	d := deployment(t)
	if c := d.Spec.Template.Spec.Containers[0]; len(c.Command) > 0 {
		t.Fatalf("the container has the command %q, want the entry point of the image", c.Command)
	}
	args := append(d.Spec.Template.Spec.Containers[0].Args, "--kubeconfig="+inRoot(root, "kubeconfig"), "--secure-port=0")
	manager, said := inImage(t.Context(), root, "setpoint", args...)
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- manager.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		err := <-ended // the end of the test's context has stopped it
		if t.Failed() {
			t.Logf("the manager ended: %v; it said:\n%s", err, said)
		}
	})

	key := object.Key{Namespace: "kube-system", Name: "setpoint-manager"}
	setpointtest.Await(t, cluster.Client, key, "both replicas are available", func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 2 })
	run(documented.Commands()[1])
	lease := object.Key{Namespace: "kube-system", Name: "kube-controller-manager"}
	setpointtest.Await(t, cluster.Client, lease, "the manager holds the lease", func(l *coordinationv1.Lease) bool {
		return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
	})
	if err := manager.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
	for _, bad := range []string{"forbidden", "lack a right"} {
		if strings.Contains(said.String(), bad) {
			t.Errorf("the manager says %q: the manifests lack a right", bad)
		}
	}
	setpointtest.Await(t, cluster.Client, lease, "the manager has released the lease", func(l *coordinationv1.Lease) bool {
		return l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == ""
	})

	watch, seen := inImage(t.Context(), root, "setpoint-watch", "deployments", "-n", "kube-system", "--initial", "--cursor", inRoot(root, "tmp/cursor"), "--once",
		"--kubeconfig="+inRoot(root, "kubeconfig"))
	if err := watch.Run(); watch.ProcessState == nil || watch.ProcessState.ExitCode() > 1 {
		t.Errorf("setpoint-watch of the image: %v: %s", err, seen)
	}
}

func TestTheRightsInTheManifestsAreThoseThatTheManagerPrints(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(manifests, "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	_, line, _ := strings.Cut(head, ": setpoint ")
	args := strings.Fields(line)
	if len(args) < 4 {
		t.Fatalf("rbac.yaml begins with %q, want the command that makes it", head)
	}
	printed, err := output(t.Context(), filepath.Join(built(t)[host], "setpoint"), args...)
	if err != nil {
		t.Fatal(err)
	}
	if rest != string(printed) {
		t.Error("deploy/manager/rbac.yaml is out of date: run make manifests")
	}
}
