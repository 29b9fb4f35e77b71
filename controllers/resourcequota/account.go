// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/object"
)

// unkept is how late the account may see a write of admission. If the time of the last write is older
// and status.used has more than before, the time is not that of the write.
const unkept = 10 * time.Second

// account is what the controller knows of one ResourceQuota: the sums of the objects in its
// namespace, and what has been freed since its status was written last. Handlers of informers and
// the run of the quota use it, each with mu held.
type account struct {
	key   object.Key
	uid   types.UID
	spec  corev1.ResourceQuotaSpec
	quota accounting.Quota

	mu      sync.Mutex
	sources map[schema.GroupResource]source // of the kinds that are counted
	tallies map[schema.GroupResource]*tally // of the kinds that are counted
	// hard is the limits of the quota, as the last run has seen them.
	hard corev1.ResourceList
	// freed is what objects have stopped to count for, and what status.used still has.
	freed corev1.ResourceList
	// recorded is status.used as the account has seen or written it last, of the resources that
	// are counted.
	recorded corev1.ResourceList
	flight   flight
	admitted time.Time // when admission wrote status.used last, as far as is known
	began    time.Time // when the first run for the quota began to count its kinds
	wrote    time.Time // when the status was written last

	audit    audit
	reported map[schema.GroupResource]string // the Events about kinds that are not counted
}

// source is where the objects of a kind come from.
type source struct {
	view view
	// uniform is what each object counts for, nil if that depends on the object.
	uniform corev1.ResourceList
}

func newAccount(q *corev1.ResourceQuota, quota accounting.Quota, longest time.Duration) *account {
	return &account{
		key: object.KeyOf(q), uid: q.UID, spec: *q.Spec.DeepCopy(), quota: quota,
		sources: map[schema.GroupResource]source{}, tallies: map[schema.GroupResource]*tally{},
		flight: flight{longest: longest},
	}
}

// isOf reports whether the account counts what a quota counts now. Other amounts of the same
// resources change nothing.
func (a *account) isOf(q *corev1.ResourceQuota, quota accounting.Quota) bool {
	return a.uid == q.UID && slices.Equal(a.quota.Limited(), quota.Limited()) &&
		slices.Equal(a.spec.Scopes, q.Spec.Scopes) && equality.Semantic.DeepEqual(a.spec.ScopeSelector, q.Spec.ScopeSelector)
}

// set takes over what an object counts for, and reports whether the account has changed. The
// caller holds mu.
func (a *account) set(kind schema.GroupResource, name string, now charged) bool {
	t := a.tallies[kind]
	if t == nil {
		return false
	}
	s := t.set(name, now)
	if len(s.freed) > 0 {
		a.freed = add(a.freed, s.freed)
	}
	if s.isNew && !now.created.IsZero() {
		a.flight.appear(now.created, s.raised)
	}
	return !s.isNone()
}

// load takes over all objects of a kind: the first count of a kind, or a new one. Objects that
// were counted and are not there any more are freed. Of a first count nothing is known of how its
// objects appeared. The caller holds mu.
func (a *account) load(kind schema.GroupResource, names []corev1.ResourceName, objects map[string]charged) {
	t := a.tallies[kind]
	if t == nil || !slices.Equal(t.names, names) {
		t = newTally(names)
		a.tallies[kind] = t
		for name, now := range objects {
			t.set(name, now)
		}
		for _, name := range names {
			delete(a.recorded, name)
			delete(a.freed, name)
		}
		return
	}
	for name := range t.uids {
		if _, there := objects[name]; !there {
			a.set(kind, name, charged{})
		}
	}
	for name, now := range objects {
		a.set(kind, name, now)
	}
}

// count returns the sum of a resource over all kinds. The caller holds mu.
func (a *account) count(name corev1.ResourceName) resource.Quantity {
	sum := *resource.NewQuantity(0, resource.DecimalSI)
	for _, t := range a.tallies {
		if slices.Contains(t.names, name) {
			sum.Add(t.sum.Used(name)[name])
		}
	}
	return sum
}

// isTight reports whether what has been freed and is not written yet is at least as much as what is
// left of the quota, for some resource: a request that the API server refuses now may then be
// admitted. The caller holds mu.
func (a *account) isTight() bool {
	for name, freed := range a.freed {
		hard, limited := a.hard[name]
		if !limited {
			continue
		}
		// status.used has what objects count for, what was freed, and what is in flight.
		used := a.count(name)
		used.Add(freed)
		if recorded := a.recorded[name]; recorded.Cmp(used) > 0 {
			used = recorded
		}
		if left := difference(hard, used); freed.Cmp(left) >= 0 {
			return true
		}
	}
	return false
}

// observe notes what admission has added to status.used since the account saw it last. admitted is
// when admission wrote it, by the clock of the API server, zero if that is not known. Of a resource
// that the account sees for the first time, all that is more than the count may have been added
// then. The caller holds mu.
func (a *account) observe(used corev1.ResourceList, counted []corev1.ResourceName, admitted, now time.Time) {
	added := corev1.ResourceList{}
	for _, name := range counted {
		is, there := used[name]
		if !there {
			continue
		}
		was, known := a.recorded[name]
		if !known {
			was = a.count(name)
			a.flight.restart(name)
		}
		if is.Cmp(was) > 0 {
			added[name] = difference(is, was)
		}
	}
	// A server that does not keep the time shows an old one for what is new.
	if admitted.IsZero() || admitted.After(now) || a.recorded != nil && admitted.Equal(a.admitted) && now.Sub(admitted) > unkept {
		admitted = now
	} else {
		a.admitted = admitted
	}
	a.flight.expire(now)
	a.flight.raise(admitted, added)
	a.remember(used, counted)
}

// remember keeps status.used as it is now. The caller holds mu.
func (a *account) remember(used corev1.ResourceList, counted []corev1.ResourceName) {
	a.recorded = corev1.ResourceList{}
	for _, name := range counted {
		if q, there := used[name]; there {
			a.recorded[name] = q
		}
	}
}

// doubt is for a write of which the answer was lost: the account remembers the smaller one of what
// may be recorded, so that it does not miss what admission adds. The caller holds mu.
func (a *account) doubt(written corev1.ResourceList) {
	for name, was := range a.recorded {
		if q, there := written[name]; there && q.Cmp(was) < 0 {
			a.recorded[name] = q
		}
	}
}

// settle forgets what was freed and is written. What was freed meanwhile stays. The caller holds mu.
func (a *account) settle(freed corev1.ResourceList) {
	maps.DeleteFunc(a.freed, func(name corev1.ResourceName, q resource.Quantity) bool {
		written := freed[name]
		return q.Cmp(written) <= 0
	})
	for name, q := range a.freed {
		a.freed[name] = difference(q, freed[name])
	}
}
