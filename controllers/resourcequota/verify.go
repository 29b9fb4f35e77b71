// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/object"
)

// audit is the comparison of the sums of an account with a full count.
type audit struct {
	at time.Time // of the last full count
	// suspects are the objects that the full count found otherwise than the sums have them, by
	// their versions. They may have changed at that moment, so they are compared once more.
	suspects map[one]object.Version
}

// verify compares the sums of an account with a full count once in each period, and returns when
// it has to go on. A difference is a mistake in this program: it is logged, counted and mended.
// The caller holds the lock of the account.
func (r *resourceQuotas) verify(a *account, around accounting.Around) (next time.Time) {
	now := around.Now
	switch {
	case r.options.SyncPeriod <= 0:
		return time.Time{}
	case a.audit.at.IsZero():
		a.audit.at = now // all kinds have just been counted
	case a.audit.suspects == nil && now.Sub(a.audit.at) >= r.options.SyncPeriod:
		a.audit = audit{at: now, suspects: a.differences(around)}
	case a.audit.suspects != nil && now.Sub(a.audit.at) >= again:
		for o, version := range a.differences(around) {
			if was, suspect := a.audit.suspects[o]; suspect && was == version && a.sources[o.kind].view.isCurrent() {
				r.mend(a, o, around)
			}
		}
		a.audit.suspects = nil
	}
	if len(a.audit.suspects) > 0 {
		return a.audit.at.Add(again)
	}
	a.audit.suspects = nil
	return time.Time{}
}

// mend counts an object again that a sum has otherwise.
func (r *resourceQuotas) mend(a *account, o one, around accounting.Around) {
	was := a.tallies[o.kind].of(o.name)
	if _, err := a.refresh(o.kind, o.name, around); err != nil {
		delete(a.sources, o.kind) // the next run counts the kind again
	}
	r.mended.add(1)
	r.log.Error("the sum of a ResourceQuota had another amount of an object than a full count; it is mended",
		"quota", a.key.String(), "kind", o.kind.String(), "object", a.key.Namespace+"/"+o.name, "was", text(was), "is", text(a.tallies[o.kind].of(o.name)))
}

// differences returns the objects that the sums have otherwise than the cache, by their versions.
func (a *account) differences(around accounting.Around) map[one]object.Version {
	found := map[one]object.Version{}
	for kind, t := range a.tallies {
		from := a.sources[kind].view
		if from == nil {
			continue
		}
		there := map[string]bool{}
		for key, s := range from.in(a.key.Namespace) {
			there[key.Name] = true
			now, err := a.charge(kind, s, around)
			if err == nil && (!same(now.Used, t.of(key.Name)) || len(now.Used) > 0 && t.uids[key.Name] != now.uid) {
				found[one{kind, key.Name}] = s.meta.Version
			}
		}
		for name := range t.uids {
			if !there[name] {
				found[one{kind, name}] = ""
			}
		}
	}
	return found
}

// relieve lowers the amounts of a plan that are more than the objects count for and more than may
// be in flight, after a full count on the server. A cache that is behind must not lower them.
func (r *resourceQuotas) relieve(ctx context.Context, a *account, s *state) error {
	names := slices.Sorted(maps.Keys(s.plan.surplus))
	a.mu.Lock()
	sources := maps.Clone(a.sources)
	a.mu.Unlock()
	server := corev1.ResourceList{}
	for _, name := range names {
		server[name] = *resource.NewQuantity(0, resource.DecimalSI)
	}
	around := r.devices.around(&account{sources: sources}, time.Now())
	for kind, from := range sources {
		if from.view == nil || !slices.ContainsFunc(a.quota.Tracks(kind, around), func(name corev1.ResourceName) bool { return slices.Contains(names, name) }) {
			continue
		}
		objects, err := from.view.list(ctx, a.key.Namespace)
		if err != nil {
			return fmt.Errorf("listing %s: %w", kind, err)
		}
		of := account{quota: a.quota, sources: sources}
		for _, o := range objects {
			now, err := of.charge(kind, o, around)
			if err != nil {
				return fmt.Errorf("counting %s %s: %w", kind, o.meta.Key, err)
			}
			for name := range server {
				sum := server[name]
				sum.Add(now.Used[name])
				server[name] = sum
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, q := range server {
		if count := a.count(name); count.Cmp(q) > 0 {
			server[name] = count
		}
	}
	before := maps.Clone(s.plan.status.Used)
	s.plan.relieve(server, func(name corev1.ResourceName) resource.Quantity { return a.flight.most(name, time.Now()) })
	if !same(before, s.plan.status.Used) {
		r.log.Info("status.used had more than there is, from requests that failed after admission: lowering it",
			"quota", a.key.String(), "was", text(before), "is", text(s.plan.status.Used))
	}
	return nil
}
