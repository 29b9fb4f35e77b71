// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// token is the key of the loop: a Secret, and the account that it names. A Secret that
// names another account is another key. The account that a deleted Secret named is kept
// until it has been reconciled.
type token struct {
	secret object.Key
	named  reference
}

// String says it to people.
func (t token) String() string {
	if t.named.account == "" {
		return t.secret.String()
	}
	return t.secret.String() + " of " + t.named.account
}

// reference is how a Secret names its account.
type reference struct {
	account string
	uid     types.UID // "" is any
}

// is reports whether an account is the one that is named.
func (r reference) is(account *corev1.ServiceAccount) bool {
	return account.Name == r.account && (r.uid == "" || r.uid == account.UID)
}

func referenceOf(secret cache.Item[*corev1.Secret]) (reference, error) {
	annotations, err := secret.Annotations()
	return reference{annotations[corev1.ServiceAccountNameKey], types.UID(annotations[corev1.ServiceAccountUIDKey])}, err
}

// unname removes the name of a Secret that went from its account, if that is still the same
// account and has it. What a process has not reconciled at its end stays, as upstream's
// does: an account that names a Secret which does not exist does no harm, and may name one
// of another kind or one that is created later.
func (r *reconciler) unname(ctx context.Context, went token) error {
	if went.named.account == "" {
		return nil
	}
	if err := r.unnameIn(ctx, object.Key{Namespace: went.secret.Namespace, Name: went.named.account}, went); err != nil {
		return fmt.Errorf("removing secret %s from service account %s: %w", went.secret, went.named.account, err)
	}
	return nil
}

func (r *reconciler) unnameIn(ctx context.Context, key object.Key, went token) error {
	lost := went.named
	if known, err := r.accounts.Get(key); err != nil || !lost.is(known) {
		if apierrors.IsNotFound(err) {
			err = nil // the account went too
		}
		return err
	}
	// The client that created the Secret may have named it in the account a moment ago.
	account, err := r.accounts.Server().Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	names := func(o corev1.ObjectReference) bool { return o.Name == went.secret.Name }
	if !lost.is(account) || !slices.ContainsFunc(account.Secrets, names) {
		return nil
	}
	account.Secrets = slices.DeleteFunc(account.Secrets, names)
	_, err = r.accounts.Update(ctx, account)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
