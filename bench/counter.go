// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// podCounter counts the Pods that are created, by a watch of their metadata
// alone: what measures should cost less than what is measured.
type podCounter struct {
	client  *client.Client
	version string

	mu    sync.Mutex
	n     int
	err   error
	moved chan struct{} // closed and replaced when something is new
}

// countPods begins to count. It ends with ctx.
func (c *cluster) countPods(ctx context.Context) (*podCounter, error) {
	_, version, err := client.For[*corev1.Pod](c.client).List(ctx, client.Selection{})
	if err != nil {
		return nil, err
	}
	p := &podCounter{client: c.client, version: string(version), moved: make(chan struct{})}
	go func() {
		// A server ends the watches that it cannot feed; the next one goes on.
		for {
			if err := p.watch(ctx); err != nil {
				p.note(0, err)
				return
			}
		}
	}()
	return p, nil
}

func (p *podCounter) watch(ctx context.Context) error {
	pods := object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	watch, err := p.client.Watch(ctx, pods, client.Selection{MetadataOnly: true}, client.WatchOptions{ResourceVersion: p.version})
	if err != nil {
		return err
	}
	defer func() { _ = watch.Close() }()
	for {
		event, err := watch.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if event.Type == wire.Error {
			return fmt.Errorf("the watch ended with an error event at version %s", p.version)
		}
		var o metav1.PartialObjectMetadata
		if err := watch.Encoding.Decode(event.Object, &o); err != nil {
			return err
		}
		p.version = o.ResourceVersion
		if event.Type == wire.Added {
			p.note(1, nil)
		}
	}
}

func (p *podCounter) note(n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n += n
	p.err = err
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *podCounter) seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// reach waits until n Pods have been created.
func (p *podCounter) reach(ctx context.Context, n int) error {
	for {
		p.mu.Lock()
		now, err, moved := p.n, p.err, p.moved
		p.mu.Unlock()
		switch {
		case now >= n:
			return nil
		case err != nil:
			return fmt.Errorf("counting Pods: %w", err)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d Pods, there are %d: %w", n, now, ctx.Err())
		}
	}
}
