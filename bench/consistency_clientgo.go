// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// backOffConsistency is a controller in the way of kube-controller-manager 1.37: what a run wrote is noted by its key, and a run
// that begins before the cache has it ends with an error, by which the queue repeats it with growing delay.
// Sources: k8s.io/kubernetes/pkg/controller/util/consistency, EnsureReady and WroteAt, and
// k8s.io/kubernetes/pkg/controller/replicaset, syncReplicaSet and processNextWorkItem.
//
// No other module can import the original without thirty replace lines. This one leaves out what costs the
// original more: expectations, metrics and the log of errors.
type backOffConsistency struct {
	world     *consistencyWorld
	plain     kubernetes.Interface
	owners    corelisters.ConfigMapLister
	all       corelisters.ServiceAccountLister
	store     clientgo.Store // of children
	queue     workqueue.TypedRateLimitingInterface[object.Key]
	mu        sync.RWMutex
	versions  map[object.Key]string // the newest that was written for a key
	informers informers.SharedInformerFactory
}

// errBehind is the error of a run that began before the cache had what the run before wrote.
var errBehind = errors.New("read version is not as new as written version")

func (c *backOffConsistency) wroteAt(key object.Key, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, noted := c.versions[key]; noted {
		if order, err := resourceversion.CompareResourceVersion(before, version); err == nil && order >= 0 {
			return
		}
	}
	c.versions[key] = version
}

func (c *backOffConsistency) ensureReady(key object.Key) error {
	c.mu.RLock()
	wrote, noted := c.versions[key]
	c.mu.RUnlock()
	if !noted {
		return nil
	}
	order, err := resourceversion.CompareResourceVersion(wrote, c.store.LastStoreSyncResourceVersion())
	if err == nil && order > 0 {
		return errBehind
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.versions, key)
	return nil
}

func (c *backOffConsistency) owner(_ context.Context, key object.Key) (*corev1.ConfigMap, error) {
	return c.owners.ConfigMaps(key.Namespace).Get(key.Name)
}

func (c *backOffConsistency) children(_ context.Context, owner object.Key) ([]*corev1.ServiceAccount, error) {
	return c.all.ServiceAccounts(owner.Namespace).List(labels.Everything())
}

func (c *backOffConsistency) patch(ctx context.Context, owner *corev1.ConfigMap, child object.Key, body []byte) error {
	written, err := c.plain.CoreV1().ServiceAccounts(child.Namespace).Patch(ctx, child.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	c.wroteAt(object.KeyOf(owner), written.ResourceVersion)
	return nil
}

// next runs the next key, and reports whether there may be more.
func (c *backOffConsistency) next(ctx context.Context, failed func(error)) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	again, err := c.sync(ctx, key)
	switch {
	case err == nil:
		c.queue.Forget(key)
		if again > 0 {
			c.queue.AddAfter(key, again)
		}
		return true
	case errors.Is(err, errBehind):
		c.world.wasted.Add(1)
	case ctx.Err() == nil:
		failed(err)
	}
	c.queue.AddRateLimited(key)
	return true
}

func (c *backOffConsistency) sync(ctx context.Context, key object.Key) (time.Duration, error) {
	if err := c.ensureReady(key); err != nil {
		return 0, err
	}
	return c.world.reconcile(ctx, key, c)
}

func newBackOffConsistency(s *sideSpec, w *consistencyWorld) (*loop, error) {
	plain, err := kubernetes.NewForConfig(&rest.Config{Host: s.Server, QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType: wire.Protobuf.MediaType(), AcceptContentTypes: wire.Protobuf.MediaType() + "," + wire.JSON.MediaType(),
	}})
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(plain, 0)
	owners, children := factory.Core().V1().ConfigMaps(), factory.Core().V1().ServiceAccounts()
	c := &backOffConsistency{
		world: w, plain: plain, owners: owners.Lister(), all: children.Lister(), store: children.Informer().GetStore(),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[object.Key]()),
		versions: map[object.Key]string{}, informers: factory,
	}
	enqueue := func(o any) {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			c.queue.Add(object.KeyOf(o))
		case *corev1.ServiceAccount:
			c.queue.Add(object.Key{Namespace: o.Namespace, Name: ownerName})
		}
	}
	handler := clientgo.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, o any) { enqueue(o) }}
	for _, informer := range []clientgo.SharedIndexInformer{owners.Informer(), children.Informer()} {
		for _, h := range []clientgo.ResourceEventHandler{arrivals(w), handler} {
			if _, err := informer.AddEventHandler(h); err != nil {
				return nil, fmt.Errorf("adding a handler to client-go's informer: %w", err)
			}
		}
	}
	l := &loop{}
	l.run = func(ctx context.Context) error { return c.run(ctx, s.Workers, l.fail) }
	return l, nil
}

func (c *backOffConsistency) run(ctx context.Context, workers int, failed func(error)) error {
	c.informers.Start(ctx.Done())
	defer c.informers.Shutdown()
	for kind, synced := range c.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("client-go's informer of %v has not synced", kind)
		}
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for c.next(ctx, failed) { // the condition is the work
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	all.Wait()
	return nil
}
