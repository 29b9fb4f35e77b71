// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	class     = "example.com/balancer" // of the Services that are ours
	finalizer = "example.com/balancer"
	condition = "BalancerReady"

	// A worker that waits for an answer costs a goroutine, so there are many: as many
	// keys as hang at a time delay no other.
	workers = 100
	// After failures without advice of the provider, each key on its own.
	firstRetry, lastRetry = time.Second, 5 * time.Minute
)

type controller struct {
	provider *provider
	log      *slog.Logger

	factory  informers.SharedInformerFactory
	services listers.ServiceLister
	synced   cache.InformerSynced
	server   typed.CoreV1Interface
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newController(clientset kubernetes.Interface, p *provider, log *slog.Logger) (*controller, error) {
	factory := informers.NewSharedInformerFactory(clientset, 0)
	services := factory.Core().V1().Services()
	c := &controller{
		provider: p,
		log:      log,
		factory:  factory,
		services: services.Lister(),
		server:   clientset.CoreV1(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)),
	}
	add := func(o any) {
		key, err := cache.DeletionHandlingObjectToName(o)
		if err != nil {
			log.Error("an event without a key", "error", err)
			return
		}
		c.queue.Add(key)
	}
	registration, err := services.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(before, after any) {
			if changed(before, after) {
				add(after)
			}
		},
		DeleteFunc: add,
	})
	if err != nil {
		return nil, err
	}
	c.synced = registration.HasSynced
	return c, nil
}

// changed leaves out what makes no difference. Above all that is our own status: a run
// because of it would come before the time that the provider named.
func changed(before, after any) bool {
	was, ok := before.(*corev1.Service)
	is, alsoOk := after.(*corev1.Service)
	return !ok || !alsoOk || was.UID != is.UID ||
		!equality.Semantic.DeepEqual(was.Spec, is.Spec) || !was.DeletionTimestamp.Equal(is.DeletionTimestamp)
}

// run works until ctx ends.
func (c *controller) run(ctx context.Context) error {
	c.factory.Start(ctx.Done())
	defer c.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
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
	ctx, cancel := context.WithTimeout(ctx, 2*c.provider.timeout+10*time.Second)
	defer cancel()
	err := c.reconcile(ctx, key)
	later, waits := errors.AsType[*laterError](err)
	_, refused := errors.AsType[*refusedError](err)
	switch {
	case err == nil:
		c.queue.Forget(key)
	case waits:
		c.queue.Forget(key)
		c.queue.AddAfter(key, later.after)
	case refused:
		c.queue.Forget(key)
		c.log.Warn("giving up until something changes", "object", key.String(), "error", err)
	default:
		c.log.Warn("failed, trying again", "object", key.String(), "error", err)
		c.queue.AddRateLimited(key)
	}
	return true
}

// reconcile sees to the balancer of one Service.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	service, err := c.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !ours(service) {
		return c.remove(ctx, service)
	}
	// From here on there may be a balancer, so the Service must not go without us.
	if !slices.Contains(service.Finalizers, finalizer) {
		if service, err = c.setFinalizers(ctx, service, append(slices.Clone(service.Finalizers), finalizer)); err != nil {
			return err
		}
	}
	want := balancer{Name: key.String()}
	for _, port := range service.Spec.Ports {
		want.Ports = append(want.Ports, port.Port)
	}
	address, err := c.provider.ensure(ctx, string(service.UID), want)
	return c.conclude(ctx, service, address, err)
}

// remove sees to it that there is no balancer.
func (c *controller) remove(ctx context.Context, service *corev1.Service) error {
	if !slices.Contains(service.Finalizers, finalizer) {
		return nil
	}
	if err := c.provider.remove(ctx, string(service.UID)); err != nil {
		return c.conclude(ctx, service, "", err)
	}
	left := slices.DeleteFunc(slices.Clone(service.Finalizers), func(f string) bool { return f == finalizer })
	_, err := c.setFinalizers(ctx, service, left)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// setFinalizers replaces the finalizers of a Service that has not changed.
func (c *controller) setFinalizers(ctx context.Context, service *corev1.Service, names []string) (*corev1.Service, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": names, "resourceVersion": service.ResourceVersion,
	}})
	if err != nil {
		return nil, err
	}
	return c.server.Services(service.Namespace).Patch(ctx, service.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// conclude writes the result into the status, and returns what decides when the Service
// is reconciled again.
func (c *controller) conclude(ctx context.Context, service *corev1.Service, address string, failure error) error {
	now := service.DeepCopy()
	describe(now, address, failure, time.Now())
	if equality.Semantic.DeepEqual(service, now) {
		return failure
	}
	if _, err := c.server.Services(now.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return failure
}

// ours reports whether a Service is to have a balancer.
func ours(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		s.Spec.LoadBalancerClass != nil && *s.Spec.LoadBalancerClass == class
}

// describe sets the status: the address if there is one, and what is waited for if not.
func describe(service *corev1.Service, address string, failure error, at time.Time) {
	status, reason, message := metav1.ConditionTrue, "Ready", "the balancer leads here"
	if later, ok := errors.AsType[*laterError](failure); ok {
		status, reason = metav1.ConditionFalse, "Waiting"
		message = later.why + "; next try at " + at.Add(later.after).UTC().Format(time.RFC3339)
	} else if _, refused := errors.AsType[*refusedError](failure); refused {
		status, reason, message = metav1.ConditionFalse, "Refused", failure.Error()+"; next try when the Service changes"
	} else if failure != nil {
		status, reason, message = metav1.ConditionFalse, "Failed", failure.Error()+"; the request is tried again"
	}
	meta.SetStatusCondition(&service.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, ObservedGeneration: service.Generation, Reason: reason, Message: message,
	})
	if address != "" {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	}
}
