// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// finalizerWait is how long the controller of a finalizer is expected to take.
// Source: k8s.io/kubernetes/pkg/controller/namespace/deletion, finalizerEstimateSeconds.
const finalizerWait = 15 * time.Second

// deletesAtOnce is how many objects of a kind are deleted at a time where the
// server cannot delete them all with one request.
const deletesAtOnce = 8

// leftover is what is left of a kind in a namespace.
type leftover struct {
	resource   object.Resource
	namespace  string
	objects    map[types.UID]string // names
	finalizers map[string]int       // how many objects have each
	deleting   int                  // how many objects are being deleted
	grace      time.Duration        // the longest grace period of them
	version    string               // resourceVersion of the list
	estimate   time.Duration        // how long they may take to go; 0: not known
}

func (l leftover) count() int { return len(l.objects) }

// content deletes what is in namespaces.
type content struct {
	client *client.Client
	slots  chan struct{} // one for each kind that is worked on
}

func newContent(c *client.Client, kinds int) *content {
	return &content{client: c, slots: make(chan struct{}, kinds)}
}

// remove deletes the objects of a kind in a namespace that has been terminating for
// a time, and returns what is left of them. Where something is left for no reason that
// can be seen, the error says so; what is left is returned with it.
func (c *content) remove(ctx context.Context, kind client.Served, namespace string, age time.Duration) (leftover, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return leftover{}, context.Cause(ctx)
	}
	if !kind.Can("list") {
		// Deleted unseen, as upstream does. That the kind is empty is not known.
		_, err := c.collection(ctx, kind, namespace)
		return leftover{}, err
	}
	left, err := c.list(ctx, kind.Resource, namespace)
	if err != nil || left.count() == 0 {
		return leftover{}, err
	}
	if left.deleting < left.count() || left.forCollector() {
		deleted, err := c.collection(ctx, kind, namespace)
		if err == nil && !deleted {
			err = c.each(ctx, kind.Resource, namespace, left.objects)
		}
		if err != nil {
			return leftover{}, err
		}
		if left, err = c.list(ctx, kind.Resource, namespace); err != nil || left.count() == 0 {
			return leftover{}, err
		}
	}
	left.estimate = estimate(left, age)
	if left.estimate == 0 {
		return left, fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", namespace, kind.GroupVersionResource())
	}
	return left, nil
}

// forCollector reports whether objects wait for the garbage collector, to which a deletion before has left their dependents. Everything in the
// namespace goes, so another deletion has the server take these finalizers off.
// Source: k8s.io/apiserver/pkg/registry/generic/registry, deletionFinalizersForGarbageCollection.
func (l leftover) forCollector() bool {
	return l.finalizers[metav1.FinalizerDeleteDependents]+l.finalizers[metav1.FinalizerOrphanDependents] > 0
}

// estimate is how long the objects may take to go: their grace period, unless it
// should be over by now, or the time for finalizers.
func estimate(left leftover, age time.Duration) time.Duration {
	switch {
	case left.grace > age:
		return left.grace
	case len(left.finalizers) > 0:
		return finalizerWait
	}
	return 0
}

// list returns the objects of a kind in a namespace; none if the kind is not there
// any more.
func (c *content) list(ctx context.Context, r object.Resource, namespace string) (leftover, error) {
	left := leftover{resource: r, namespace: namespace, objects: map[types.UID]string{}, finalizers: map[string]int{}}
	var o metav1.PartialObjectMetadata
	list, err := c.client.List(ctx, r, client.Selection{Namespace: namespace, MetadataOnly: true, WithoutManagedFields: true}, client.ListOptions{},
		func(e wire.Encoding, raw []byte) error {
			o = metav1.PartialObjectMetadata{}
			if err := e.Decode(raw, &o); err != nil {
				return err
			}
			left.add(&o)
			return nil
		})
	if absent(err) {
		return leftover{}, nil
	}
	left.version = list.ResourceVersion
	return left, err
}

func (l *leftover) add(o *metav1.PartialObjectMetadata) {
	l.objects[o.UID] = o.Name
	for _, f := range o.Finalizers {
		l.finalizers[f]++
	}
	if o.DeletionTimestamp == nil {
		return
	}
	l.deleting++
	if o.DeletionGracePeriodSeconds != nil {
		l.grace = max(l.grace, time.Duration(*o.DeletionGracePeriodSeconds)*time.Second)
	}
}

// background leaves what the objects own to the garbage collector: no finalizer is added,
// which a controller would have to remove.
const background = `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}`

// collection deletes all objects of a kind in a namespace with one request. It
// returns false if the server cannot.
func (c *content) collection(ctx context.Context, kind client.Served, namespace string) (bool, error) {
	if !kind.Can("deletecollection") {
		return false, nil
	}
	// The answer holds what was deleted. The answer is not read, and without the content
	// of the objects it is small.
	const metadataOnly = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	stream, err := c.client.Request(http.MethodDelete).Resource(kind.Resource).Namespace(namespace).
		Accept(wire.Protobuf.MediaType()+metadataOnly, wire.JSON.MediaType()+metadataOnly, wire.JSON.MediaType()).
		Body(wire.JSON.MediaType(), []byte(background)).Stream(ctx)
	if absent(err) || apierrors.IsMethodNotSupported(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer stream.Body.Close()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		return false, fmt.Errorf("deleting all %s in namespace %s: %w", kind.Resource, namespace, err)
	}
	return true, nil
}

// absent reports whether a kind is not served, or not any more.
func absent(err error) bool { return apierrors.IsNotFound(err) }

// each deletes objects one by one.
func (c *content) each(ctx context.Context, r object.Resource, namespace string, objects map[types.UID]string) error {
	type one struct {
		uid  types.UID
		name string
	}
	next := make(chan one)
	typed := client.ForResource[*metav1.PartialObjectMetadata](c.client, r)
	errs := make([]error, deletesAtOnce)
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			for o := range next {
				err := typed.Delete(ctx, object.Key{Namespace: namespace, Name: o.name},
					client.IfUID(o.uid), client.Propagation(metav1.DeletePropagationBackground))
				// A conflict is another object under the name: the next list has it.
				if err != nil && errs[i] == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					errs[i] = err
				}
			}
		})
	}
	for uid, name := range objects {
		next <- one{uid, name}
	}
	close(next)
	workers.Wait()
	return errors.Join(errs...)
}
