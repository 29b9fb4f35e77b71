// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	_ "net/http/pprof" //nolint:gosec // G108: the benchmark reads the size of the heap there, on 127.0.0.1
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the server to watch")
	annotation := flag.String("annotation", "", "the annotation to tell of")
	port := flag.Int("plain-port", 0, "port on 127.0.0.1 for /debug/pprof; 0 is none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *port != 0 {
		server := &http.Server{Addr: fmt.Sprint("127.0.0.1:", *port), ReadHeaderTimeout: time.Minute}
		go func() { fmt.Fprintln(os.Stderr, "kubewatch:", server.ListenAndServe()) }()
	}
	if err := run(ctx, *kubeconfig, *annotation); err != nil {
		fmt.Fprintln(os.Stderr, "kubewatch:", err)
		stop()
		os.Exit(1)
	}
}

// run tells of changes until ctx ends.
func run(ctx context.Context, kubeconfig, annotation string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c, err := newController(client, annotation, os.Stdout)
	if err != nil {
		return err
	}
	return c.run(ctx)
}
