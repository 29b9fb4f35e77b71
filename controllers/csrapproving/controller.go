// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrapproving

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/certrequest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "certificatesigningrequest-approving-controller"

// firstRetry is how soon a request is reconciled again after a failure. Source:
// k8s.io/kubernetes/pkg/controller/certificates, certificate_controller.go.
const firstRetry = 200 * time.Millisecond

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many requests are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	group := []string{certificatesv1.GroupName}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"list", "watch"}},
		{APIGroups: group, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}},
		{
			APIGroups: group, Resources: []string{"signers"}, Verbs: []string{"approve"},
			ResourceNames: []string{certificatesv1.KubeAPIServerClientKubeletSignerName},
		},
		{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		requests: cache.Informer[*certificatesv1.CertificateSigningRequest](h).With(client.MetadataAnswer()),
		reviews:  client.For[*authorizationv1.SubjectAccessReview](h.Client()),
	}
	return controller.New(Name, r.reconcile,
		controller.For(r.requests, predicate.Stays),
		controller.Workers(o.Workers),
		controller.RateLimit(workqueue.Backoff[object.Key](firstRetry, 0)),
	), nil
}

type reconciler struct {
	requests cache.SharedInformer[*certificatesv1.CertificateSigningRequest]
	reviews  client.Typed[*authorizationv1.SubjectAccessReview]
}

// reconcile approves a request that is neither approved nor denied, if its author has the
// right to it.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	csr, err := r.requests.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if approved, denied := certrequest.Decided(csr); approved || denied || len(csr.Status.Certificate) > 0 {
		return controller.Result{}, nil
	}
	parsed, err := certrequest.Parse(csr.Spec.Request)
	if err != nil {
		// The server lets no such request in.
		return controller.Result{}, controller.Terminal(fmt.Errorf("reading certificate signing request %s: %w", csr.Name, err))
	}
	ways := waysOf(csr, parsed)
	for _, w := range ways {
		review, err := r.reviews.Create(ctx, question(csr, w))
		if err != nil {
			return controller.Result{}, fmt.Errorf("reviewing the rights of the author of certificate signing request %s: %w", csr.Name, err)
		}
		if !review.Status.Allowed {
			continue
		}
		csr = csr.DeepCopy()
		approve(csr, w)
		_, err = r.requests.Sub("approval").Update(ctx, req.Key, csr)
		if err != nil && !apierrors.IsNotFound(err) {
			return controller.Result{}, fmt.Errorf("approving certificate signing request %s: %w", csr.Name, err)
		}
		return controller.Result{}, nil
	}
	controller.Because(ctx, undecided(csr, ways))
	if len(ways) > 0 {
		return controller.Result{After: askAgain(time.Since(csr.CreationTimestamp.Time))}, nil
	}
	return controller.Result{}, nil
}
