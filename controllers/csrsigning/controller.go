// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
const Name = "certificatesigningrequest-signing-controller"

// firstRetry is how soon a request is reconciled again after a failure. Source:
// k8s.io/kubernetes/pkg/controller/certificates, certificate_controller.go.
const firstRetry = 200 * time.Millisecond

// reasonInvalid is the reason of the condition Failed, which tools read.
const reasonInvalid = "SignerValidationFailure"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many requests are worked on at a time.
	Workers int
	// Authorities has the certificate authority of each signer; [Signers] lists those
	// that can be. Requests to others are left alone. At least one is needed; [ForAll]
	// makes one authority that of all.
	Authorities map[string]Source
	// Longest is how long a certificate lasts at most, and how long one lasts whose
	// request names no duration.
	Longest time.Duration
}

// ForAll has all signers share an authority.
func ForAll(s Source) map[string]Source {
	all := map[string]Source{}
	for _, signer := range Signers() {
		all[signer] = s
	}
	return all
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	group := []string{certificatesv1.GroupName}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"list", "watch"}},
		{APIGroups: group, Resources: []string{"certificatesigningrequests/status"}, Verbs: []string{"update"}},
		{APIGroups: group, Resources: []string{"signers"}, ResourceNames: Signers(), Verbs: []string{"sign"}},
	}
}

// New returns the controller, built on h, which runs it. It reads each authority once,
// so that one that cannot be read is an error now and not when it is needed.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		requests:    cache.Informer[*certificatesv1.CertificateSigningRequest](h).With(client.MetadataAnswer()),
		authorities: maps.Clone(o.Authorities),
		longest:     o.Longest,
	}
	return controller.New(Name, r.reconcile,
		controller.For(r.requests, predicate.Stays),
		controller.Workers(o.Workers),
		controller.RateLimit(workqueue.Backoff[object.Key](firstRetry, 0)),
	), nil
}

func (o *Options) check() error {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return err
	}
	if o.Longest <= 0 {
		return fmt.Errorf("certificates that last %s; want more than 0", o.Longest)
	}
	if len(o.Authorities) == 0 {
		return fmt.Errorf("no certificate authority to sign with; give one in Options.Authorities")
	}
	for _, signer := range slices.Sorted(maps.Keys(o.Authorities)) {
		if checks[signer] == nil {
			return fmt.Errorf("no signer is called %q; there are %q", signer, Signers())
		}
		if _, err := o.Authorities[signer](); err != nil {
			return fmt.Errorf("for signer %s: %w", signer, err)
		}
	}
	return nil
}

type reconciler struct {
	requests    cache.SharedInformer[*certificatesv1.CertificateSigningRequest]
	authorities map[string]Source
	longest     time.Duration
}

// reconcile answers a request that waits for one of our signers.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	csr, err := r.requests.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	source := r.authorities[csr.Spec.SignerName]
	if source == nil || !waits(csr) {
		r.because(ctx, csr)
		return controller.Result{}, nil
	}
	csr = csr.DeepCopy()
	if err := r.answer(csr, source, time.Now()); err != nil {
		return controller.Result{}, err
	}
	if _, err := r.requests.UpdateStatus(ctx, csr); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("storing the answer to certificate signing request %s: %w", csr.Name, err)
	}
	return controller.Result{}, nil
}

// waits reports whether a request is approved and has no answer yet.
func waits(csr *certificatesv1.CertificateSigningRequest) bool {
	approved, denied := certrequest.Decided(csr)
	return approved && !denied && !certrequest.Failed(csr) && len(csr.Status.Certificate) == 0
}

// answer puts the certificate into the request's status, or why there is none.
func (r *reconciler) answer(csr *certificatesv1.CertificateSigningRequest, source Source, now time.Time) error {
	parsed, err := certrequest.Parse(csr.Spec.Request)
	if err != nil {
		// The server lets no such request in.
		return controller.Terminal(fmt.Errorf("reading certificate signing request %s: %w", csr.Name, err))
	}
	if err := checks[csr.Spec.SignerName](parsed, csr.Spec.Usages); err != nil {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue,
			Reason: reasonInvalid, Message: err.Error(), LastUpdateTime: metav1.NewTime(now),
		})
		return nil //nolint:nilerr // what is wrong with the request is the answer
	}
	authority, err := source()
	if err != nil {
		return fmt.Errorf("signing for certificate signing request %s: %w", csr.Name, err)
	}
	csr.Status.Certificate, err = authority.sign(parsed, csr.Spec.Usages, lifetime(csr.Spec.ExpirationSeconds, r.longest), now)
	if err != nil {
		return fmt.Errorf("signing for certificate signing request %s: %w", csr.Name, err)
	}
	return nil
}
