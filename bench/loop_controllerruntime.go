// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/setpoint-io/setpoint/object"
)

// kubeObject is a pointer to a T that controller-runtime knows what to do with.
type kubeObject[T any] interface {
	*T
	crclient.Object
}

// controllerRuntimeObjects are read through a manager's client, from its cache.
type controllerRuntimeObjects[T any, P kubeObject[T]] struct{ client crclient.Client }

func (o controllerRuntimeObjects[T, P]) get(ctx context.Context, key object.Key) (object.Object, error) {
	got := P(new(T))
	err := o.client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, got)
	return got, err
}

func (o controllerRuntimeObjects[T, P]) patch(ctx context.Context, key object.Key, body []byte) error {
	which := P(new(T))
	which.SetNamespace(key.Namespace)
	which.SetName(key.Name)
	return o.client.Patch(ctx, which, crclient.RawPatch(types.MergePatchType, body))
}

// newControllerRuntimeLoop makes a controller as controller-runtime's builder does, with
// its defaults, except its server of metrics and its log.
func newControllerRuntimeLoop[T any, P kubeObject[T]](s *sideSpec, config *rest.Config, work loopWork) (*loop, error) {
	k, err := kindNamed(s.Kind)
	if err != nil {
		return nil, err
	}
	l := &loop{}
	manager, err := crmanager.New(config, crmanager.Options{
		Scheme: scheme.Scheme, Logger: logr.Discard(), Metrics: crmetrics.Options{BindAddress: "0"},
		// A replay has no discovery.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{k.groupVersionKind().GroupVersion()})
			mapper.AddSpecific(k.groupVersionKind(), k.groupVersionResource(), k.groupVersionResource(), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making a manager of controller-runtime: %w", err)
	}
	objects := controllerRuntimeObjects[T, P]{manager.GetClient()}
	err = builder.ControllerManagedBy(manager).Named("bench").For(P(new(T))).
		WithOptions(crcontroller.Options{MaxConcurrentReconciles: s.Workers}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			err := work(ctx, object.Key{Namespace: request.Namespace, Name: request.Name}, objects)
			if err != nil {
				l.fail(err)
			}
			return reconcile.Result{}, err
		}))
	if err != nil {
		return nil, fmt.Errorf("making a controller of controller-runtime: %w", err)
	}
	l.run = manager.Start
	return l, nil
}
