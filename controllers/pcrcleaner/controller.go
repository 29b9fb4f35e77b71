// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pcrcleaner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "podcertificaterequest-cleaner-controller"

// How old a request becomes, and how often the controller looks.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app,
// newPodCertificateRequestCleanerController.
const (
	oldest = 15 * time.Minute
	period = 5 * time.Minute
)

// codeNotServed is the code of the reason why the controller has nothing to do.
const codeNotServed = "KindNotServed"

// Options changes how the controller works. There is nothing to change.
type Options struct{}

// kind is what PodCertificateRequests are.
var kind = object.Resource{Group: certificatesv1.GroupName, Version: "v1", Plural: "podcertificaterequests", Kind: "PodCertificateRequest", Namespaced: true}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"podcertificaterequests"}, Verbs: []string{"get", "list", "delete"},
	}}
}

// all is the key of the only run.
type all struct{}

// String is the key in logs and on pages.
func (all) String() string { return "all PodCertificateRequests" }

type reconciler struct {
	requests client.Typed[*metav1.PartialObjectMetadata]
	log      *slog.Logger
	now      func() time.Time
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, _ Options) (*controller.Keyed[all], error) { return newWith(h, time.Now) }

func newWith(h controller.Host, now func() time.Time) (*controller.Keyed[all], error) {
	r := &reconciler{
		requests: client.ForResource[*metav1.PartialObjectMetadata](h.Client(), kind),
		log:      h.Logger().With("controller", Name),
		now:      now,
	}
	loop := controller.NewKeyed(Name, r.reconcile)
	loop.Periodically(period, all{})
	return loop, nil
}

// reconcile deletes the requests that are too old.
func (r *reconciler) reconcile(ctx context.Context, _ controller.RequestOf[all]) (controller.Result, error) {
	requests, _, err := r.requests.List(ctx, client.Selection{MetadataOnly: true})
	if apierrors.IsNotFound(err) {
		controller.Because(ctx, controller.Reason{
			Code: codeNotServed, Text: "the API server does not serve {kind}", Params: controller.With("kind", kind.Plural+"."+kind.Group+"/"+kind.Version),
			Ends: "an API server of another version or with other flags",
		})
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("listing pod certificate requests: %w", err)
	}
	var failures []error
	deleted := 0
	for _, request := range requests {
		if r.now().Sub(request.CreationTimestamp.Time) < oldest || request.DeletionTimestamp != nil {
			continue
		}
		switch err := r.requests.Delete(ctx, object.KeyOf(request), client.IfUID(request.UID)); {
		case err == nil:
			deleted++
		case !client.AbsentAt(err, object.KeyOf(request)):
			failures = append(failures, fmt.Errorf("deleting pod certificate request %s: %w", object.KeyOf(request), err))
		}
	}
	if deleted > 0 {
		r.log.Info("deleted pod certificate requests that are too old", "requests", deleted, "age", oldest.String())
	}
	return controller.Result{}, errors.Join(failures...)
}
