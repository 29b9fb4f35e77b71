// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	crhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/setpoint-io/setpoint/object"
)

type controllerRuntimeConsistency struct{ client crclient.Client }

func (o controllerRuntimeConsistency) owner(ctx context.Context, key object.Key) (*corev1.ConfigMap, error) {
	got := &corev1.ConfigMap{}
	return got, o.client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, got)
}

func (o controllerRuntimeConsistency) children(ctx context.Context, owner object.Key) ([]*corev1.ServiceAccount, error) {
	var list corev1.ServiceAccountList
	if err := o.client.List(ctx, &list, crclient.InNamespace(owner.Namespace)); err != nil {
		return nil, err
	}
	all := make([]*corev1.ServiceAccount, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

func (o controllerRuntimeConsistency) patch(ctx context.Context, _ *corev1.ConfigMap, child object.Key, body []byte) error {
	which := &corev1.ServiceAccount{}
	which.Namespace, which.Name = child.Namespace, child.Name
	return o.client.Patch(ctx, which, crclient.RawPatch(types.MergePatchType, body))
}

// newControllerRuntimeConsistency makes a controller as controller-runtime's builder does, with the option by which reads wait
// for own writes. All else is its default, except its server of metrics and its log.
func newControllerRuntimeConsistency(s *sideSpec, w *consistencyWorld) (*loop, error) {
	l := &loop{}
	consistent := true
	manager, err := crmanager.New(&rest.Config{Host: s.Server, QPS: -1}, crmanager.Options{
		Scheme: scheme.Scheme, Logger: logr.Discard(), Metrics: crmetrics.Options{BindAddress: "0"},
		Client: crclient.Options{Cache: &crclient.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
	})
	if err != nil {
		return nil, fmt.Errorf("making a manager of controller-runtime: %w", err)
	}
	if err := hearControllerRuntime(manager, w); err != nil {
		return nil, err
	}
	o := controllerRuntimeConsistency{manager.GetClient()}
	err = builder.ControllerManagedBy(manager).Named("bench").For(&corev1.ConfigMap{}).
		Watches(&corev1.ServiceAccount{}, crhandler.EnqueueRequestsFromMapFunc(func(_ context.Context, child crclient.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: child.GetNamespace(), Name: ownerName}}}
		})).
		WithOptions(crcontroller.Options{MaxConcurrentReconciles: s.Workers}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			again, err := w.reconcile(ctx, object.Key{Namespace: request.Namespace, Name: request.Name}, o)
			if err != nil && ctx.Err() == nil {
				l.fail(err)
			}
			return reconcile.Result{RequeueAfter: again}, err
		}))
	if err != nil {
		return nil, fmt.Errorf("making a controller of controller-runtime: %w", err)
	}
	l.run = manager.Start
	return l, nil
}

// hearControllerRuntime adds the handlers that note when changes arrive.
func hearControllerRuntime(manager crmanager.Manager, w *consistencyWorld) error {
	ctx := context.Background() // returns at once: the cache does not run yet
	for _, o := range []crclient.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}} {
		informer, err := manager.GetCache().GetInformer(ctx, o)
		if err == nil {
			_, err = informer.AddEventHandler(arrivals(w))
		}
		if err != nil {
			return fmt.Errorf("adding a handler to controller-runtime's cache: %w", err)
		}
	}
	return nil
}

// arrivals is a handler of client-go that notes when changes arrive.
func arrivals(w *consistencyWorld) clientgo.ResourceEventHandler {
	arrived := func(o any) {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			w.ownerArrived(object.KeyOf(o), o.Labels[noteLabel])
		case *corev1.ServiceAccount:
			w.childArrived(object.KeyOf(o), o.Labels[gottenLabel])
		}
	}
	return clientgo.ResourceEventHandlerFuncs{AddFunc: arrived, UpdateFunc: func(_, o any) { arrived(o) }}
}
