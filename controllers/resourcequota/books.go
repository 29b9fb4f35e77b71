// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/object"
)

// books are the accounts of all quotas, by namespace: an event of an object in a namespace without
// quotas costs one look. It is safe for concurrent use.
type books struct {
	longest time.Duration // how long a request may take, for new accounts

	mu       sync.RWMutex
	accounts map[string][]*account
}

// in returns the accounts of a namespace. The slice is read-only.
func (b *books) in(namespace string) []*account {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.accounts[namespace]
}

// of returns the account of a quota. It is a new one if there is none, or if the quota counts
// something else now.
func (b *books) of(q *corev1.ResourceQuota, quota accounting.Quota) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.accounts[q.Namespace]
	at := slices.IndexFunc(all, func(a *account) bool { return a.key.Name == q.Name })
	if at >= 0 && all[at].isOf(q, quota) {
		return all[at]
	}
	a := newAccount(q, quota, b.longest)
	all = slices.Clone(all) // readers have the old one
	if at >= 0 {
		all[at] = a
	} else {
		all = append(all, a)
	}
	if b.accounts == nil {
		b.accounts = map[string][]*account{}
	}
	b.accounts[q.Namespace] = all
	return a
}

// forget removes the account of a quota.
func (b *books) forget(key object.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(b.accounts[key.Namespace]), func(a *account) bool { return a.key == key })
	if b.accounts[key.Namespace] = left; len(left) == 0 {
		delete(b.accounts, key.Namespace)
	}
}

// all returns all accounts.
func (b *books) all() (all []*account) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, of := range b.accounts {
		all = append(all, of...)
	}
	return all
}
