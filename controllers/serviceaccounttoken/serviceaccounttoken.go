// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
const Name = "serviceaccount-token-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// PrivateKey signs the tokens: RSA or ECDSA, in PEM. It is needed, and the API
	// server must know its public half. It is a secret.
	PrivateKey []byte
	// RootCA are the certificates, in PEM, that stand beside each token. Empty leaves
	// what a Secret has.
	RootCA []byte
	// Workers is how many Secrets are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. A role cannot be limited to
// Secrets of one type.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "update", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get", "list", "watch", "update"}},
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	if len(o.PrivateKey) == 0 {
		return nil, fmt.Errorf("making %s: %w", Name, errNoKey)
	}
	signer, err := newSigner(o.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		secrets: cache.Informer[*corev1.Secret](h,
			cache.WithFields(fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String())).
			With(client.MetadataAnswer()),
		accounts: cache.Informer[*corev1.ServiceAccount](h).With(client.MetadataAnswer()),
		signer:   signer,
		rootCA:   o.RootCA,
		log:      h.Logger().With("controller", Name),
	}
	r.ofAccount = cache.NewIndex(r.secrets, accountOf)
	return controller.NewKeyed(Name, r.reconcile,
		controller.Watches(r.secrets, tokenOf),
		controller.Watches(r.accounts, r.tokensOf, predicate.Gone),
		controller.Workers(o.Workers),
	), nil
}

var errNoKey = errors.New("a private key to sign tokens with is missing; its public key must be one of the API server's")

// accountOf indexes Secrets by the account that they name.
func accountOf(secret cache.Item[*corev1.Secret]) ([]string, error) {
	annotations, err := secret.Annotations()
	name := annotations[corev1.ServiceAccountNameKey]
	if err != nil || name == "" {
		return nil, err
	}
	return []string{object.Key{Namespace: secret.Key().Namespace, Name: name}.String()}, nil
}

type reconciler struct {
	secrets   cache.SharedInformer[*corev1.Secret]
	ofAccount cache.Index[*corev1.Secret]
	accounts  cache.SharedInformer[*corev1.ServiceAccount]
	signer    *signer
	rootCA    []byte
	log       *slog.Logger
}

// tokenOf is the mapping from a Secret.
func tokenOf(secret cache.Item[*corev1.Secret], add func(token)) {
	// Annotations that cannot be read name no account. A run says so.
	named, _ := referenceOf(secret)
	add(token{secret.Key(), named})
}

// tokensOf adds those of an account that went. An account that appears or changes is no
// work: its Secrets are reconciled by their own events.
func (r *reconciler) tokensOf(account cache.Item[*corev1.ServiceAccount], add func(token)) {
	for _, secret := range r.ofAccount.Find(account.Key().String()) {
		tokenOf(secret, add)
	}
}

// reconcile fills a Secret, or deletes it if it has no account, or takes one that went off
// its account.
func (r *reconciler) reconcile(ctx context.Context, req controller.RequestOf[token]) (controller.Result, error) {
	key := req.Key.secret
	item := r.secrets.Snapshot().Get(key)
	if !item.Exists() {
		return controller.Result{}, r.unname(ctx, req.Key)
	}
	named, err := referenceOf(item)
	if err != nil {
		return controller.Result{}, err
	}
	if named != req.Key.named || named.account == "" || item.Meta().Deleting() {
		return controller.Result{}, nil // where it names another account by now, that is a key of its own
	}
	account, err := r.account(ctx, key.Namespace, named)
	if err != nil {
		return controller.Result{}, fmt.Errorf("reading service account %s/%s: %w", key.Namespace, named.account, err)
	}
	if account == nil {
		r.log.Debug("deleting the token of a service account that does not exist", "secret", key.String(), "serviceAccount", named.account)
		err := r.secrets.Delete(ctx, key, client.IfUID(item.Meta().UID))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict: it is another Secret now
			return controller.Result{}, fmt.Errorf("deleting secret %s, whose service account does not exist: %w", key, err)
		}
		return controller.Result{}, nil
	}
	secret, err := item.Object()
	if err != nil {
		return controller.Result{}, err
	}
	return controller.Result{}, r.fill(ctx, secret, account)
}

// account returns the account that is named, nil if there is none with that UID. What the
// informer does not have is read from the server.
func (r *reconciler) account(ctx context.Context, namespace string, named reference) (*corev1.ServiceAccount, error) {
	key := object.Key{Namespace: namespace, Name: named.account}
	account, err := r.accounts.Get(key)
	if err == nil && named.is(account) {
		return account, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	account, err = r.accounts.Server().Get(ctx, key)
	if client.AbsentAt(err, key) || err == nil && !named.is(account) {
		return nil, nil
	}
	return account, err
}

// fill adds to a Secret what is missing.
func (r *reconciler) fill(ctx context.Context, secret *corev1.Secret, account *corev1.ServiceAccount) error {
	lacks := lacking(secret, r.rootCA)
	if lacks == (lack{}) {
		return nil
	}
	filled := secret.DeepCopy()
	if filled.Data == nil {
		filled.Data = map[string][]byte{}
	}
	if lacks.certificates {
		filled.Data[corev1.ServiceAccountRootCAKey] = r.rootCA
	}
	if lacks.namespace {
		filled.Data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	}
	if lacks.token {
		token, err := r.signer.token(account, secret.Name)
		if err != nil {
			return fmt.Errorf("signing a token for secret %s: %w", object.KeyOf(secret), err)
		}
		filled.Data[corev1.ServiceAccountTokenKey] = token
	}
	filled.Annotations[corev1.ServiceAccountNameKey] = account.Name
	filled.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	_, err := r.secrets.Update(ctx, filled)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsInvalid(err): // one that must not be changed, say
		return controller.Terminal(fmt.Errorf("filling secret %s: %w", object.KeyOf(secret), err))
	}
	return fmt.Errorf("filling secret %s: %w", object.KeyOf(secret), err)
}

// lack is what a Secret does not have.
type lack struct{ certificates, namespace, token bool }

func lacking(secret *corev1.Secret, rootCA []byte) lack {
	return lack{
		certificates: len(rootCA) > 0 && !bytes.Equal(secret.Data[corev1.ServiceAccountRootCAKey], rootCA),
		namespace:    len(secret.Data[corev1.ServiceAccountNamespaceKey]) == 0,
		token:        len(secret.Data[corev1.ServiceAccountTokenKey]) == 0,
	}
}
