// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/listers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// controller brings the Deployments of Foos to their desired state.
type controller struct {
	kube        kubernetes.Interface
	example     *clientset
	deployments appslisters.DeploymentLister
	foos        listers.ResourceIndexer[*Foo]
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced      []cache.DoneChecker
}

func newController(kube kubernetes.Interface, example *clientset, kubeFactory informers.SharedInformerFactory, exampleFactory *fooFactory) (*controller, error) {
	deployments, foos := kubeFactory.Apps().V1().Deployments(), exampleFactory.Foos()
	c := &controller{
		kube: kube, example: example, deployments: deployments.Lister(), foos: foos.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	ofFoos, err := foos.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, after any) { c.enqueue(after) },
	})
	if err != nil {
		return nil, err
	}
	ofDeployments, err := deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueueOwner,
		UpdateFunc: func(before, after any) {
			// A resync sends Deployments that have not changed.
			if before.(*appsv1.Deployment).ResourceVersion != after.(*appsv1.Deployment).ResourceVersion {
				c.enqueueOwner(after)
			}
		},
		DeleteFunc: c.enqueueOwner,
	})
	if err != nil {
		return nil, err
	}
	c.synced = []cache.DoneChecker{ofFoos.HasSyncedChecker(), ofDeployments.HasSyncedChecker()}
	return c, nil
}

// run reconciles until ctx ends.
func (c *controller) run(ctx context.Context) error {
	defer c.queue.ShutDown()
	if !cache.WaitFor(ctx, "caches", c.synced...) {
		return errors.New("the caches have not synced")
	}
	go func() {
		for c.next(ctx) {
		}
	}()
	<-ctx.Done()
	return nil
}

func (c *controller) next(ctx context.Context) bool {
	key, stopped := c.queue.Get()
	if stopped {
		return false
	}
	defer c.queue.Done(key)
	if err := c.reconcile(ctx, key); err != nil {
		klog.FromContext(ctx).Error(err, "A Foo was not reconciled, and is tried again", "foo", key)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	foo, err := listers.NewNamespaced(c.foos, key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	deployment, err := c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		deployment, err = c.kube.AppsV1().Deployments(foo.Namespace).Create(ctx, newDeployment(foo), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(deployment, foo) {
		return fmt.Errorf("the Deployment %q exists already and is not that of Foo %s", deployment.Name, key)
	}
	if foo.Spec.Replicas != nil && *foo.Spec.Replicas != *deployment.Spec.Replicas {
		deployment, err = c.kube.AppsV1().Deployments(foo.Namespace).Update(ctx, newDeployment(foo), metav1.UpdateOptions{})
		if err != nil {
			return err
		}
	}
	if foo.Status.AvailableReplicas == deployment.Status.AvailableReplicas {
		return nil
	}
	changed := foo.DeepCopy() // an object of the cache is shared
	changed.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	_, err = c.example.Foos(foo.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return err
}

func (c *controller) enqueue(o any) {
	if name, err := cache.ObjectToName(o); err == nil {
		c.queue.Add(name)
	}
}

// enqueueOwner enqueues the Foo of a Deployment, or of the tombstone of one.
func (c *controller) enqueueOwner(o any) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	deployment, ok := o.(metav1.Object)
	if !ok {
		return
	}
	if owner := metav1.GetControllerOf(deployment); owner != nil && owner.Kind == "Foo" {
		c.queue.Add(cache.NewObjectName(deployment.GetNamespace(), owner.Name))
	}
}

func newDeployment(foo *Foo) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: foo.Spec.DeploymentName, Namespace: foo.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, groupVersion.WithKind("Foo"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: foo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}
