// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// plan is the status that a ResourceQuota is to have, and why.
type plan struct {
	status corev1.ResourceQuotaStatus
	// freed is what the status does not have any more because objects have gone.
	freed corev1.ResourceList
	// held are the resources of which status.used has more than the objects count for, because
	// a creation may be in flight, and how much more.
	held corev1.ResourceList
	// surplus are the resources of which status.used has more than the objects count for, and
	// more than may be in flight, and how much more. The plan keeps it: see [account.relieve].
	surplus corev1.ResourceList
	// recheck is when held may become less without an event, zero for never.
	recheck time.Time
}

// plan decides what the status of a quota is to be. counted are the resources whose kinds are all
// counted; the others keep the value that they have. The caller holds mu, and has called observe.
//
// Admission writes status.used before the object is stored. So a count that does not have the
// object yet must not be written: what admission has added would be lost, and another client
// could get it a second time. Therefore the controller subtracts what it has seen go, and never
// writes less than it counts. What is left above the count is in flight, or it was added for a
// request that failed after admission.
func (a *account) plan(q *corev1.ResourceQuota, counted []corev1.ResourceName, now time.Time) plan {
	p := plan{
		status:  corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: corev1.ResourceList{}},
		freed:   corev1.ResourceList{},
		held:    corev1.ResourceList{},
		surplus: corev1.ResourceList{},
	}
	for name := range q.Spec.Hard {
		recorded, there := q.Status.Used[name]
		if !slices.Contains(counted, name) {
			if there {
				p.status.Used[name] = recorded
			}
			continue
		}
		if freed, some := a.freed[name]; some {
			p.freed[name] = freed.DeepCopy()
		}
		count := a.count(name)
		used := count
		if there {
			used = difference(recorded, p.freed[name])
		}
		if used.Cmp(count) <= 0 {
			p.status.Used[name] = count
			continue
		}
		p.status.Used[name] = used
		more := difference(used, count)
		if most := a.flight.most(name, now); more.Cmp(most) <= 0 {
			p.held[name] = more
		} else {
			p.surplus[name] = difference(more, most)
		}
	}
	if len(p.held)+len(p.surplus) > 0 {
		p.recheck = a.flight.next(now)
	}
	return p
}

// relieve removes a surplus from the plan, down to a count on the server: a cache that is behind
// must not lower status.used.
func (p *plan) relieve(server corev1.ResourceList, most func(corev1.ResourceName) resource.Quantity) {
	for name := range p.surplus {
		count, known := server[name]
		if !known {
			continue
		}
		least := count.DeepCopy()
		least.Add(most(name))
		if used := p.status.Used[name]; used.Cmp(least) > 0 {
			p.status.Used[name] = least
		}
	}
}

// changes reports whether the status is another one than that of the quota. Amounts are compared
// by their values.
func (p *plan) changes(q *corev1.ResourceQuota) bool {
	return !same(p.status.Hard, q.Status.Hard) || !same(p.status.Used, q.Status.Used)
}

func difference(a, b resource.Quantity) resource.Quantity {
	a = a.DeepCopy()
	a.Sub(b)
	return a
}
