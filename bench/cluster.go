// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/child"
	"github.com/setpoint-io/setpoint/object"
)

// cluster is a control plane in a process of its own, without nodes, without
// scheduler and without controllers: Pods are created, not run, and only
// the candidate works.
type cluster struct {
	dir        string // for what a candidate writes
	kubeconfig string
	client     *client.Client
	process    *child.Process
}

func startCluster(ctx context.Context, bin string) (*cluster, error) {
	return startClusterWith(ctx, bin, child.Options{NoScheduler: true})
}

func startClusterWith(ctx context.Context, bin string, o child.Options) (*cluster, error) {
	o.Path = filepath.Join(bin, "setpoint-controlplane")
	process, err := child.Start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%w; run \"make build\" first", err)
	}
	c := &cluster{process: process, kubeconfig: process.Endpoints().Kubeconfig}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err == nil {
		c.client, err = client.New(config)
	}
	if err == nil {
		c.dir, err = os.MkdirTemp("", "setpoint-bench-")
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// stop ends the control plane and removes what was written.
func (c *cluster) stop() error {
	err := c.process.Stop()
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// poll asks until f says that it is done.
func poll(ctx context.Context, what string, f func() (bool, error)) error {
	for {
		done, err := f()
		if done || err != nil && !timedOut(err) { // a server that is busy answers the next time
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
