// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// What a kubelet writes to the status of a Pod, as merge patches.
const (
	readyPod     = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	unreadyPod   = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}`
	succeededPod = `{"status":{"phase":"Succeeded"}}`
)

// kubelet writes one status to every Pod that is created, by as many clients as there are plain
// ones. It takes the place of nodes and of the scheduler, which would cost more than what is
// measured. A Pod that it has written to has no node, so a delete removes it at once.
type kubelet struct {
	scene   *scene
	status  string
	version string
	pods    chan string // names
	end     context.CancelFunc
	all     sync.WaitGroup

	mu  sync.Mutex
	err error
}

// startKubelet begins with the Pods that are created from now on.
func (s *scene) startKubelet(ctx context.Context, status string) (*kubelet, error) {
	list, err := s.plain.CoreV1().Pods("default").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	k := &kubelet{scene: s, status: status, version: list.ResourceVersion, pods: make(chan string)}
	ctx, k.end = context.WithCancel(ctx)
	k.all.Go(func() {
		defer close(k.pods)
		// A server ends the watches that it cannot feed; the next one goes on.
		for k.watch(ctx) == nil {
		}
	})
	for range s.clients {
		k.all.Go(func() {
			for name := range k.pods {
				_ = k.fail(ctx, s.setStatus(ctx, name, status)) // it keeps the error
			}
		})
	}
	return k, nil
}

// setStatus writes the status of a Pod. That the Pod is gone is no error.
func (s *scene) setStatus(ctx context.Context, name, status string) error {
	_, err := s.plain.CoreV1().Pods("default").Patch(ctx, name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// watch returns nil when the server has ended the watch.
func (k *kubelet) watch(ctx context.Context) error {
	pods := object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	watch, err := k.scene.client.Watch(ctx, pods, client.Selection{Namespace: "default", MetadataOnly: true}, client.WatchOptions{ResourceVersion: k.version})
	if err != nil {
		return k.fail(ctx, err)
	}
	defer func() { _ = watch.Close() }()
	for {
		event, err := watch.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && event.Type == wire.Error {
			err = fmt.Errorf("the watch of Pods ended with an error event at version %s", k.version)
		}
		if err != nil {
			return k.fail(ctx, err)
		}
		var o metav1.PartialObjectMetadata
		if err := watch.Encoding.Decode(event.Object, &o); err != nil {
			return k.fail(ctx, err)
		}
		k.version = o.ResourceVersion
		if event.Type != wire.Added {
			continue
		}
		select {
		case k.pods <- o.Name:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fail keeps the first error, unless the kubelet has been stopped.
func (k *kubelet) fail(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.err = errors.Join(k.err, err)
	}
	return err
}

// failed returns what went wrong so far, of the kubelet and of the manager.
func (k *kubelet) failed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.err, k.scene.aliveManager())
}

// stop ends it and returns what went wrong.
func (k *kubelet) stop() error {
	k.end()
	k.all.Wait()
	return k.err
}
