// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// eventCounter counts the objects of a resource that a watch shows in some state. A watch costs the server less than
// lists of all objects.
type eventCounter struct {
	client    *client.Client
	resource  object.Resource
	selection client.Selection
	// count returns how many objects an event adds, and the version of its object.
	count   func(event wire.Event, encoding wire.Encoding) (n int, version string, err error)
	version string // of the last event

	mu    sync.Mutex
	n     int
	err   error
	moved chan struct{} // closed and replaced when something is new
}

// countPods counts the Pods that are created. It begins now and ends with ctx.
func countPods(ctx context.Context, c *client.Client) (*eventCounter, error) {
	_, version, err := client.For[*corev1.Pod](c).List(ctx, client.Selection{})
	if err != nil {
		return nil, err
	}
	p := &eventCounter{
		client:    c,
		resource:  object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
		selection: client.Selection{MetadataOnly: true},
		version:   string(version),
		count: func(event wire.Event, encoding wire.Encoding) (int, string, error) {
			var o metav1.PartialObjectMetadata
			if err := encoding.Decode(event.Object, &o); err != nil {
				return 0, "", err
			}
			if event.Type == wire.Added {
				return 1, o.ResourceVersion, nil
			}
			return 0, o.ResourceVersion, nil
		},
	}
	p.begin(ctx)
	return p, nil
}

// begin starts to count.
func (p *eventCounter) begin(ctx context.Context) {
	p.moved = make(chan struct{})
	go func() {
		// A server ends the watch of a client that does not read as fast as there are events. The next watch
		// continues.
		for {
			if err := p.watch(ctx); err != nil {
				p.note(0, err)
				return
			}
		}
	}()
}

// watch counts until the watch has ended.
func (p *eventCounter) watch(ctx context.Context) error {
	watch, err := p.client.Watch(ctx, p.resource, p.selection, client.WatchOptions{ResourceVersion: p.version})
	if err != nil {
		return err
	}
	defer func() { _ = watch.Close() }()
	for {
		event, err := watch.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if event.Type == wire.Error {
			return fmt.Errorf("the watch ended with an error event at version %s", p.version)
		}
		n, version, err := p.count(event, watch.Encoding)
		if err != nil {
			return err
		}
		p.version = version
		if n > 0 {
			p.note(n, nil)
		}
	}
}

func (p *eventCounter) note(n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n += n
	p.err = err
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *eventCounter) seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// reach waits until n objects have been counted. alive is called each second, and an error of it ends the wait.
func (p *eventCounter) reach(ctx context.Context, n int, alive func() error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		p.mu.Lock()
		now, err, moved := p.n, p.err, p.moved
		p.mu.Unlock()
		switch {
		case now >= n:
			return nil
		case err != nil:
			return fmt.Errorf("counting %s: %w", p.resource.Plural, err)
		}
		select {
		case <-moved:
		case <-tick.C:
			if err := alive(); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d %s, there are %d: %w", n, p.resource.Plural, now, ctx.Err())
		}
	}
}
