// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// change is what the queue holds: kubewatch's Event.
type change struct {
	key    string
	reason string
	object *corev1.Pod
	old    *corev1.Pod
}

// line is what the program prints for a change.
type line struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Written   string `json:"written,omitempty"`
}

type controller struct {
	informer   cache.SharedIndexInformer
	queue      workqueue.TypedRateLimitingInterface[change]
	began      time.Time
	annotation string
	out        *json.Encoder
}

// maxRetries is how often a line that could not be written is tried again.
const maxRetries = 5

func newController(client kubernetes.Interface, annotation string, out io.Writer) (*controller, error) {
	c := &controller{
		informer:   informers.NewPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
		queue:      workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[change]()),
		annotation: annotation,
		out:        json.NewEncoder(out),
	}
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.add("Created", o, nil) },
		UpdateFunc: func(old, o any) { c.add("Updated", o, old) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			c.add("Deleted", o, nil)
		},
	})
	return c, err
}

func (c *controller) add(reason string, o, old any) {
	key, err := cache.MetaNamespaceKeyFunc(o)
	if err != nil {
		return
	}
	made := change{key: key, reason: reason}
	made.object, _ = o.(*corev1.Pod)
	made.old, _ = old.(*corev1.Pod)
	c.queue.Add(made)
}

func (c *controller) run(ctx context.Context) error {
	c.began = time.Now()
	go c.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) {
		return errors.New("the cache was not filled in time")
	}
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	for c.work() {
	}
	return nil
}

// work tells of the next change. It returns false when there will be none.
func (c *controller) work() bool {
	next, ended := c.queue.Get()
	if ended {
		return false
	}
	defer c.queue.Done(next)
	if err := c.tell(next); err == nil || c.queue.NumRequeues(next) >= maxRetries {
		c.queue.Forget(next)
	} else {
		c.queue.AddRateLimited(next)
	}
	return true
}

func (c *controller) tell(next change) error {
	if _, _, err := c.informer.GetIndexer().GetByKey(next.key); err != nil {
		return fmt.Errorf("reading %s: %w", next.key, err)
	}
	pod := next.object
	if pod == nil || next.reason == "Created" && !pod.CreationTimestamp.After(c.began) {
		return nil // it was there before
	}
	return c.out.Encode(line{
		Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, Reason: next.reason, Written: pod.Annotations[c.annotation],
	})
}
