// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// cluster is a control plane in a process of its own, without nodes and without
// controllers.
type cluster struct {
	dir        string
	kubeconfig string
	client     *client.Client
	command    *exec.Cmd
	lifeline   io.Closer
}

func startCluster(ctx context.Context, bin string) (*cluster, error) {
	dir, err := os.MkdirTemp("", "setpoint-bench-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	// Without a scheduler: Pods are created, not run, and nobody else works.
	c.command = exec.CommandContext(context.Background(), filepath.Join(bin, "setpoint-controlplane"), "--lifeline", "--no-scheduler", "--kubeconfig", c.kubeconfig)
	c.command.Stderr = os.Stderr
	if c.lifeline, err = c.command.StdinPipe(); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	lines, err := c.command.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	if err := c.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w; run \"make build\" first", err), c.stop())
	}
	if err := ready(lines); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	if c.client, err = client.New(config); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, ctx.Err()
}

// ready reads the control plane's progress until it is ready, and goes on reading
// so that it is never blocked.
func ready(lines io.Reader) error {
	in := bufio.NewScanner(lines)
	for in.Scan() {
		var line struct{ State, Component, Error string }
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return fmt.Errorf("reading the control plane's progress: %w", err)
		}
		switch {
		case line.State == "ready" && line.Component == "":
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return nil
		case line.State == "failed":
			return fmt.Errorf("starting the control plane: %s", line.Error)
		}
	}
	return errors.Join(errors.New("the control plane ended before it was ready"), in.Err())
}

// stop ends the control plane and removes what it left.
func (c *cluster) stop() error {
	if c.command.Process != nil {
		_ = c.lifeline.Close()
		timer := time.AfterFunc(30*time.Second, func() { _ = c.command.Process.Kill() })
		_ = c.command.Wait()
		timer.Stop()
	}
	return os.RemoveAll(c.dir)
}

// poll asks until f says that it is done.
func poll(ctx context.Context, what string, f func() (bool, error)) error {
	for {
		done, err := f()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// waitForServiceAccount waits until Pods can be created.
func (c *cluster) waitForServiceAccount(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return poll(ctx, "the default ServiceAccount", func() (bool, error) {
		_, err := client.For[*corev1.ServiceAccount](c.client).Get(ctx, object.Key{Namespace: "default", Name: "default"})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// waitForStatus waits until every Deployment says that it has its replicas.
func (c *cluster) waitForStatus(ctx context.Context, deployments int, replicas int32) error {
	return poll(ctx, "the status of the Deployments", func() (bool, error) {
		all, _, err := client.For[*appsv1.Deployment](c.client).List(ctx, client.Selection{Namespace: "default"})
		settled := 0
		for _, d := range all {
			if d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == replicas {
				settled++
			}
		}
		return settled == deployments, err
	})
}
