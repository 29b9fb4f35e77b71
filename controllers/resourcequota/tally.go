// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/accounting"
)

// charged is what one object counts for, as it is now.
type charged struct {
	uid     types.UID
	created time.Time
	accounting.Charge
}

// tally is what the objects of one kind in a namespace count for in one quota.
type tally struct {
	names []corev1.ResourceName // the resources of the quota that the kind counts for
	sum   accounting.Sum        // by the names of the objects
	uids  map[string]types.UID
	until map[string]time.Time // when to compute a charge again, of the objects that change with time
	last  corev1.ResourceList  // the list of the last object: the Pods of one ReplicaSet count alike
}

func newTally(names []corev1.ResourceName) *tally {
	return &tally{names: names, uids: map[string]types.UID{}, until: map[string]time.Time{}}
}

// step is how a tally changes with one object.
type step struct {
	// freed and raised are what the object counts less and more than before. They are positive.
	freed, raised corev1.ResourceList
	// isNew is set for an object that the tally did not have.
	isNew bool
}

func (s step) isNone() bool { return len(s.freed) == 0 && len(s.raised) == 0 }

// set takes over what an object counts for. An object that has another UID than the one of that
// name before is another object: all of the old one is freed.
func (t *tally) set(name string, now charged) step {
	known := t.uids[name]
	if len(now.Used) == 0 {
		delete(t.uids, name)
		delete(t.until, name)
		return step{freed: positive(t.sum.Set(types.UID(name), nil))}
	}
	used := now.Used
	if same(used, t.last) {
		used = t.last
	}
	t.last = used
	t.uids[name] = now.uid
	if delete(t.until, name); !now.Until.IsZero() {
		t.until[name] = now.Until
	}
	before := t.sum.Set(types.UID(name), used)
	if known != "" && known != now.uid {
		return step{freed: positive(before), raised: positive(used), isNew: true}
	}
	return step{freed: rest(before, used), raised: rest(used, before), isNew: known == ""}
}

// of returns what an object counts for.
func (t *tally) of(name string) corev1.ResourceList { return t.sum.Of(types.UID(name)) }

// due returns the objects whose charge has to be computed again, and when the next one is due.
func (t *tally) due(now time.Time) (names []string, next time.Time) {
	for name, until := range t.until {
		switch {
		case now.After(until):
			names = append(names, name)
		case next.IsZero() || until.Before(next):
			next = until
		}
	}
	return names, next
}

// same reports whether two lists have the same resources with the same amounts.
func same(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// rest returns by how much a is larger than b, for the resources for which it is; nil for none.
func rest(a, b corev1.ResourceList) (more corev1.ResourceList) {
	for name, q := range a {
		other := b[name]
		if q.Cmp(other) <= 0 {
			continue
		}
		q = q.DeepCopy()
		q.Sub(other)
		if more == nil {
			more = corev1.ResourceList{}
		}
		more[name] = q
	}
	return more
}

func positive(list corev1.ResourceList) corev1.ResourceList { return rest(list, nil) }

// add adds b to a, which may be nil, and returns it.
func add(a, b corev1.ResourceList) corev1.ResourceList {
	if a == nil {
		a = corev1.ResourceList{}
	}
	for name, q := range b {
		sum := a[name].DeepCopy()
		sum.Add(q)
		a[name] = sum
	}
	return a
}
