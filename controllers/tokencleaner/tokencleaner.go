// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tokencleaner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/bootstraptoken"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "token-cleaner-controller"

// codeKept is the code of the reason why a token is not deleted.
const codeKept = "TokenNotExpired"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many tokens are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do, by namespace.
func Rights() map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{bootstraptoken.Namespace: {
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch", "delete"}},
	}}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		tokens: bootstraptoken.Informer(h),
		log:    h.Logger().With("controller", Name),
	}
	return controller.New(Name, r.reconcile,
		controller.For(r.tokens),
		controller.Workers(o.Workers),
	), nil
}

type reconciler struct {
	tokens cache.SharedInformer[*corev1.Secret]
	log    *slog.Logger
}

// reconcile deletes a token that has expired, or comes back when it will have.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	secret, err := r.tokens.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	left, ends := bootstraptoken.Left(secret, time.Now())
	if ends && left > 0 {
		controller.Because(ctx, controller.Reason{
			Code: codeKept, Normal: true, Text: "the token expires at {time}", Params: controller.With("time", time.Now().Add(left).Round(time.Second).UTC().Format(time.RFC3339)),
			Ends: "that time, or a change of the expiration",
		})
	}
	if !ends || left > 0 {
		return controller.Result{After: left}, nil
	}
	err = r.tokens.Delete(ctx, req.Key, client.IfUID(secret.UID), client.IfVersion(object.MetaOf(secret).Version))
	switch {
	case err == nil:
		r.log.Info("deleted a bootstrap token that has expired", "secret", req.Key.String())
		return controller.Result{}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // what has changed comes as an event
		return controller.Result{}, nil
	}
	return controller.Result{}, fmt.Errorf("deleting bootstrap token %s: %w", req.Key, err)
}
