// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	name      = "website-controller"
	finalizer = "example.com/hosts-file" // the entry outside of the cluster has to go first
	ready     = "Ready"
	workers   = 4
)

type controller struct {
	hosts hosts
	log   *slog.Logger

	kubernetes kubernetes.Interface
	server     dynamic.NamespaceableResourceInterface

	sites  cache.GenericLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	start  []func(<-chan struct{})
	synced []cache.InformerSynced
}

func newController(clientset kubernetes.Interface, dyn dynamic.Interface, outside hosts, log *slog.Logger) (*controller, error) {
	custom := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	// Only what is labelled as ours: there may be many ConfigMaps of others.
	builtin := informers.NewSharedInformerFactoryWithOptions(clientset, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = labelled }))
	c := &controller{
		hosts:      outside,
		log:        log,
		kubernetes: clientset,
		server:     dyn.Resource(websites),
		sites:      custom.ForResource(websites).Lister(),
		queue:      workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		start:      []func(<-chan struct{}){custom.Start, builtin.Start},
	}
	err := c.watch(custom.ForResource(websites).Informer(), func(o metav1.Object) {
		c.queue.Add(cache.MetaObjectToName(o))
	})
	for _, informer := range []cache.SharedIndexInformer{
		builtin.Core().V1().ConfigMaps().Informer(),
		builtin.Apps().V1().Deployments().Informer(),
		builtin.Core().V1().Services().Informer(),
	} {
		err = errors.Join(err, c.watch(informer, func(o metav1.Object) {
			if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == websiteKind.Kind {
				c.queue.Add(cache.NewObjectName(o.GetNamespace(), owner.Name))
			}
		}))
	}
	return c, err
}

// watch adds what changes to the queue.
func (c *controller) watch(informer cache.SharedIndexInformer, add func(metav1.Object)) error {
	handle := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if o, ok := o.(metav1.Object); ok {
			add(o)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle,
		UpdateFunc: func(before, o any) {
			handle(before) // the owner may be another one now
			handle(o)
		},
		DeleteFunc: handle,
	})
	if err != nil {
		return err
	}
	c.synced = append(c.synced, registration.HasSynced)
	return nil
}

// run works until ctx ends.
func (c *controller) run(ctx context.Context) error {
	for _, start := range c.start {
		start(ctx.Done())
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return nil
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

func (c *controller) next(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.reconcile(ctx, key); err != nil {
		c.log.Warn("failed, trying again", "object", key.String(), "error", err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// reconcile makes one Website as it should be.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	found, err := c.sites.ByNamespace(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	site, err := websiteOf(found.(runtime.Unstructured))
	if err != nil {
		return err
	}
	held := slices.Contains(site.Finalizers, finalizer)
	if site.DeletionTimestamp != nil {
		if err := c.hosts.remove(site); err != nil || !held {
			return err
		}
		_, err := c.setFinalizers(ctx, site, slices.DeleteFunc(site.Finalizers, func(f string) bool { return f == finalizer }))
		return err
	}
	if !held {
		if site, err = c.setFinalizers(ctx, site, append(site.Finalizers, finalizer)); err != nil {
			return err
		}
	}
	was := site.Status
	was.Conditions = slices.Clone(was.Conditions)
	err = c.serve(ctx, site)
	describe(site, err)
	if equality.Semantic.DeepEqual(was, site.Status) {
		return err
	}
	written, errStatus := site.unstructured()
	if errStatus == nil {
		_, errStatus = c.server.Namespace(site.Namespace).UpdateStatus(ctx, written, metav1.UpdateOptions{FieldManager: name})
	}
	return errors.Join(err, errStatus)
}

// setFinalizers replaces the finalizers of a Website that has not changed.
func (c *controller) setFinalizers(ctx context.Context, site *Website, names []string) (*Website, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": names, "resourceVersion": site.ResourceVersion,
	}})
	if err != nil {
		return nil, err
	}
	now, err := c.server.Namespace(site.Namespace).Patch(ctx, site.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	return websiteOf(now)
}

// serve makes what a Website consists of, and notes in its status what there is.
func (c *controller) serve(ctx context.Context, site *Website) error {
	if _, err := apply(ctx, c.kubernetes.CoreV1().ConfigMaps(site.Namespace), site, page(site)); err != nil {
		return err
	}
	deployment, err := apply(ctx, c.kubernetes.AppsV1().Deployments(site.Namespace), site, deployment(site))
	if err != nil {
		return err
	}
	site.Status.Available = deployment.Status.AvailableReplicas
	service, err := apply(ctx, c.kubernetes.CoreV1().Services(site.Namespace), site, service(site))
	if err != nil {
		return err
	}
	site.Status.Address = service.Spec.ClusterIP
	return c.hosts.set(site, service.Spec.ClusterIP)
}

// describe sets the condition Ready, for the spec that was reconciled.
func describe(site *Website, err error) {
	status, reason := metav1.ConditionTrue, "Serving"
	message := fmt.Sprintf("%d of %d replicas are available", site.Status.Available, site.Spec.Replicas)
	switch {
	case err != nil:
		status, reason, message = metav1.ConditionFalse, "Failed", err.Error()
	case site.Status.Available < site.Spec.Replicas:
		status, reason = metav1.ConditionFalse, "Starting"
	}
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: ready, Status: status, ObservedGeneration: site.Generation, Reason: reason, Message: message,
	})
}
