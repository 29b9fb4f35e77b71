// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// inFlight is how long a request may take from the moment at which admission raised
	// status.used until its object is stored. The API server ends a write after 34 s.
	// Source: k8s.io/apiserver/pkg/endpoints/handlers, requestTimeoutUpperBound.
	inFlight = 40 * time.Second
	// skew is by how much the clock of the API server may differ from that of this process.
	skew = 3 * time.Second
)

// flight bounds what may be in flight: resources that admission has added to status.used for
// objects that are not stored yet. All that was added in the last 40 seconds may be in flight,
// without what the objects count for that were created since and have appeared.
type flight struct {
	raised   []moment // by admission
	appeared []moment // by the creation times of the objects
}

// moment is an amount of about one second.
type moment struct {
	at     time.Time
	amount corev1.ResourceList
}

// raise notes that admission has added to status.used.
func (f *flight) raise(at time.Time, amount corev1.ResourceList) { f.raised = note(f.raised, at, amount) }

// appear notes an object that the server has created.
func (f *flight) appear(created time.Time, amount corev1.ResourceList) {
	f.appeared = note(f.appeared, created, amount)
}

func note(moments []moment, at time.Time, amount corev1.ResourceList) []moment {
	if len(amount) == 0 {
		return moments
	}
	at = at.Truncate(time.Second)
	for i := len(moments) - 1; i >= 0; i-- {
		if moments[i].at.Equal(at) {
			moments[i].amount = add(moments[i].amount, amount)
			return moments
		}
	}
	return append(moments, moment{at, add(nil, amount)})
}

// expire forgets what is too old to matter.
func (f *flight) expire(now time.Time) {
	f.raised = slices.DeleteFunc(f.raised, func(m moment) bool { return now.Sub(m.at) > inFlight+time.Second })
	f.appeared = slices.DeleteFunc(f.appeared, func(m moment) bool { return now.Sub(m.at) > inFlight-skew })
}

// most returns how much of a resource may be in flight. expire was called before.
func (f *flight) most(name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, m := range f.raised {
		sum.Add(m.amount[name])
	}
	for _, m := range f.appeared {
		sum.Sub(m.amount[name])
	}
	if sum.Sign() < 0 {
		return resource.Quantity{}
	}
	return sum
}

// next returns when the oldest addition is certain to have ended; zero if there is none.
func (f *flight) next() (at time.Time) {
	for _, m := range f.raised {
		if end := m.at.Add(inFlight + 2*time.Second); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}
