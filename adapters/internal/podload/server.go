// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// asServer is the environment variable that has a test program be the server of a load.
const asServer = "SETPOINT_BENCH_AS_SERVER"

// loads are what a server may have, by the value of the variable.
var loads = map[string]func(*fakeapi.Server) error{"pods": addPods, "targets": addTargets}

// Main is the body of TestMain in a package that uses [Serve].
func Main(m *testing.M) {
	load := os.Getenv(asServer)
	if load == "" {
		os.Exit(m.Run())
	}
	if err := serve(loads[load], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "serving %s: %v\n", load, err)
		os.Exit(1)
	}
}

// Serve starts a server that has the Pods, and returns how to reach it. It runs in a process of its
// own, so that its memory and its CPU time do not count. It ends with the benchmark.
func Serve(b *testing.B) *rest.Config {
	b.Helper()
	config := start(b, "pods")
	warm(b, config)
	return config
}

// ServeTargets is as Serve, with the ConfigMaps of [Target].
func ServeTargets(b *testing.B) *rest.Config {
	b.Helper()
	return start(b, "targets")
}

// start starts a server with a load.
func start(b *testing.B, load string) *rest.Config {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	server := exec.CommandContext(context.WithoutCancel(b.Context()), program) // the cleanup ends it, in order
	server.Env = append(os.Environ(), asServer+"="+load)
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = server.Wait()
	})
	host, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("reading the address of the server: %v", err)
	}
	return &rest.Config{Host: strings.TrimSpace(host), QPS: -1}
}

// warm lists the Pods in both encodings: the server keeps what it has encoded once.
func warm(b *testing.B, config *rest.Config) {
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		each := rest.CopyConfig(config)
		each.ContentType = encoding
		found, err := kubernetes.NewForConfigOrDie(each).CoreV1().Pods("").List(b.Context(), metav1.ListOptions{})
		if err != nil || len(found.Items) != Count {
			b.Fatalf("listing as %s: %d Pods, %v", encoding, len(found.Items), err)
		}
	}
}

// serve writes its address to out and serves a load until in ends, which it does when the benchmark
// ends in any way.
func serve(add func(*fakeapi.Server) error, in io.Reader, out io.Writer) error {
	server := fakeapi.New()
	if err := add(server); err != nil {
		return err
	}
	server.Listen()
	defer server.Close()
	fmt.Fprintln(out, server.Config().Host)
	_, err := io.Copy(io.Discard, in)
	return err
}

func addPods(server *fakeapi.Server) error {
	pods := server.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	for i := range Count {
		if err := pods.Add(Pod(i)); err != nil {
			return err
		}
	}
	return nil
}

func addTargets(server *fakeapi.Server) error {
	targets := server.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
	for i := range Count {
		if err := targets.Add(Target(i)); err != nil {
			return err
		}
	}
	return nil
}
