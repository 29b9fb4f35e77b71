// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// reference is how a Secret names its account.
type reference struct {
	account string
	uid     types.UID // "" is any
}

// is reports whether an account is the one that is named.
func (r reference) is(account *corev1.ServiceAccount) bool {
	return account.Name == r.account && (r.uid == "" || r.uid == account.UID)
}

// losses are the Secrets that went, and the accounts that may still name them. They
// end with the process, as upstream's do: an account that names a Secret which is not
// there does no harm, and may name one of another kind or one that is to come.
type losses struct {
	mu  sync.Mutex
	all map[object.Key][]reference
}

func (l *losses) add(secret object.Key, r reference) {
	if r.account == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[object.Key][]reference{}
	}
	if !slices.Contains(l.all[secret], r) {
		l.all[secret] = append(l.all[secret], r)
	}
}

func (l *losses) of(secret object.Key) []reference {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all[secret])
}

// drop forgets references that have been seen to. Others may have come since.
func (l *losses) drop(secret object.Key, done ...reference) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := slices.DeleteFunc(l.all[secret], func(r reference) bool { return slices.Contains(done, r) })
	if len(left) == 0 {
		delete(l.all, secret)
		return
	}
	l.all[secret] = left
}

// forgetLost takes a Secret that went off the accounts that name it.
func (r *reconciler) forgetLost(ctx context.Context, secret object.Key) error {
	for _, lost := range r.lost.of(secret) {
		if err := r.unname(ctx, secret, lost); err != nil {
			return fmt.Errorf("taking secret %s off service account %s: %w", secret, lost.account, err)
		}
		r.lost.drop(secret, lost)
	}
	return nil
}

// unname removes the name of a Secret from its account, if that is still the same
// account and has it.
func (r *reconciler) unname(ctx context.Context, secret object.Key, lost reference) error {
	key := object.Key{Namespace: secret.Namespace, Name: lost.account}
	if known, err := r.accounts.Get(key); err != nil || !lost.is(known) {
		if apierrors.IsNotFound(err) {
			err = nil // the account went too
		}
		return err
	}
	// Whoever created the Secret may have named it in the account a moment ago.
	account, err := r.accountWriter.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	names := func(o corev1.ObjectReference) bool { return o.Name == secret.Name }
	if !lost.is(account) || !slices.ContainsFunc(account.Secrets, names) {
		return nil
	}
	account.Secrets = slices.DeleteFunc(account.Secrets, names)
	_, err = r.accountWriter.Update(ctx, account)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
