// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrcleaner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "certificatesigningrequest-cleaner-controller"

// codeKept is the code of the reason why a request is not deleted.
const codeKept = "RequestNotExpired"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many requests are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"},
		Verbs: []string{"list", "watch", "delete"},
	}}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		requests: cache.Informer[*certificatesv1.CertificateSigningRequest](h),
		log:      h.Logger().With("controller", Name),
	}
	return controller.New(Name, r.reconcile,
		controller.For(r.requests, predicate.Stays),
		controller.Workers(o.Workers),
	), nil
}

type reconciler struct {
	requests cache.SharedInformer[*certificatesv1.CertificateSigningRequest]
	log      *slog.Logger
}

// reconcile deletes a request whose time has come, or comes back when it has.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	item := r.requests.Snapshot().Get(req.Key)
	if !item.Exists() || item.Meta().Deleting() {
		return controller.Result{}, nil
	}
	csr, err := item.Object()
	if err != nil {
		return controller.Result{}, err
	}
	at := expiry(csr)
	if at.IsZero() {
		return controller.Result{}, nil
	}
	if left := time.Until(at); left >= 0 {
		controller.Because(ctx, controller.Reason{
			Code: codeKept, Normal: true, Text: "the request is kept until {time}", Params: controller.With("time", at.UTC().Format(time.RFC3339)),
			Ends: "that time, or a change of its conditions",
		})
		return controller.Result{After: left + 1}, nil // after it, not at it
	}
	err = r.requests.Delete(ctx, object.KeyOf(csr), client.IfUID(csr.UID), client.IfVersion(item.Meta().Version))
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("deleting certificate signing request %s: %w", csr.Name, err)
	}
	r.log.Info("deleted a certificate signing request that is no longer needed", "object", csr.Name, "since", at)
	return controller.Result{}, nil
}
