// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "serviceaccount-controller"

// account is the account that Pods run as that name none.
const account = "default"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many namespaces are worked on at a time.
	Workers int
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	namespaces := cache.Informer[*corev1.Namespace](h)
	accounts := cache.Informer[*corev1.ServiceAccount](h,
		cache.WithFields(fields.OneTermEqualSelector(metav1.ObjectNameField, account).String())).
		With(client.MetadataAnswer())
	r := &reconciler{namespaces: namespaces, accounts: accounts}
	return controller.New(Name, r.reconcile,
		controller.For(namespaces, predicate.Stays),
		controller.Watches(accounts, namespaceOf, predicate.Gone),
		controller.Workers(o.Workers),
	), nil
}

// namespaceOf adds the namespace of an account.
func namespaceOf(account cache.Item[*corev1.ServiceAccount], add func(object.Key)) {
	add(object.Key{Name: account.Key().Namespace})
}

type reconciler struct {
	namespaces cache.SharedInformer[*corev1.Namespace]
	accounts   cache.SharedInformer[*corev1.ServiceAccount]
}

// reconcile creates the account of an active namespace that has none.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	namespace, err := r.namespaces.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if namespace.DeletionTimestamp != nil || namespace.Status.Phase != corev1.NamespaceActive {
		return controller.Result{}, nil
	}
	key := object.Key{Namespace: namespace.Name, Name: account}
	if r.accounts.Snapshot().Get(key).Exists() {
		return controller.Result{}, nil
	}
	_, err = r.accounts.Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	})
	if err != nil && !needless(err) {
		return controller.Result{}, fmt.Errorf("creating service account %s: %w", key, err)
	}
	return controller.Result{}, nil
}

// needless reports whether a create failed because nothing is left to create: the
// account is there, or its namespace terminates or is gone.
func needless(err error) bool {
	return apierrors.IsAlreadyExists(err) || client.NamespaceGone(err)
}
