// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// podCounter counts the Pods that are created, by a watch that decodes nothing:
// what measures should cost less than what is measured.
type podCounter struct {
	mu    sync.Mutex
	n     int
	err   error
	moved chan struct{} // closed and replaced when n grows
}

// countPods begins to count. It ends with ctx.
func (c *cluster) countPods(ctx context.Context) (*podCounter, error) {
	pods := object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	_, version, err := client.For[*corev1.Pod](c.client).List(ctx, client.Selection{})
	if err != nil {
		return nil, err
	}
	watch, err := c.client.Watch(ctx, pods, client.Selection{MetadataOnly: true}, client.WatchOptions{ResourceVersion: string(version)})
	if err != nil {
		return nil, err
	}
	p := &podCounter{moved: make(chan struct{})}
	go func() {
		defer watch.Close()
		for {
			event, err := watch.Next()
			p.mu.Lock()
			if event.Type == wire.Added {
				p.n++
			}
			p.err = err
			close(p.moved)
			p.moved = make(chan struct{})
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p, nil
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
