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
	// status.used until its object is stored. The API server ends a write after 34 s; the rest is
	// for clocks that differ. Source: k8s.io/apiserver/pkg/endpoints/handlers,
	// requestTimeoutUpperBound.
	inFlight = 40 * time.Second
	// history is how much longer a flight remembers, in order to find a moment at which nothing
	// was in flight.
	history = 20 * time.Second
)

// flight bounds what may be in flight: resources that admission has added to status.used for
// objects that are not stored yet. Both times are those of the API server that handled the request,
// which creates an object first, then runs admission, and then stores the object.
type flight struct {
	longest  time.Duration // how long a request may take: inFlight
	raised   []moment      // by the times at which admission wrote status.used
	appeared []moment      // by the creation times of the objects
}

// moment is an amount of about one second.
type moment struct {
	at     time.Time
	amount corev1.ResourceList
}

// raise notes that admission has added to status.used.
func (f *flight) raise(at time.Time, amount corev1.ResourceList) {
	f.raised = note(f.raised, at, amount)
}

// appear notes an object that was created.
func (f *flight) appear(created time.Time, amount corev1.ResourceList) {
	f.appeared = note(f.appeared, created, amount)
}

// restart forgets what it knows of a resource.
func (f *flight) restart(name corev1.ResourceName) {
	for _, m := range slices.Concat(f.raised, f.appeared) {
		delete(m.amount, name)
	}
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
	old := func(m moment) bool { return now.Sub(m.at) > f.longest+history }
	f.raised, f.appeared = slices.DeleteFunc(f.raised, old), slices.DeleteFunc(f.appeared, old)
}

// most returns how much of a resource may be in flight at most.
//
// All that was added before a moment more than 40 s ago has ended. What was added since, without
// the objects that were created since and have appeared, may be in flight. This holds for each such
// moment, so the one counts that leaves the least: requests that were under way at that moment are
// in the first and not in the second.
func (f *flight) most(name corev1.ResourceName, now time.Time) resource.Quantity {
	since := now.Add(-f.longest).Truncate(time.Second)
	least := f.since(name, since)
	for range int(history / time.Second) {
		since = since.Add(-time.Second)
		if sum := f.since(name, since); sum.Cmp(least) < 0 {
			least = sum
		}
	}
	if least.Sign() < 0 {
		return resource.Quantity{}
	}
	return least
}

// since returns what was added from a moment on and has not appeared.
func (f *flight) since(name corev1.ResourceName, moment time.Time) (sum resource.Quantity) {
	for _, m := range f.raised {
		if !m.at.Before(moment) {
			sum.Add(m.amount[name])
		}
	}
	for _, m := range f.appeared {
		if !m.at.Before(moment) {
			sum.Sub(m.amount[name])
		}
	}
	return sum
}

// next returns when the next addition of the last 40 s is certain to have ended; zero if there is
// none.
func (f *flight) next(now time.Time) (at time.Time) {
	for _, m := range f.raised {
		if end := m.at.Add(f.longest + 2*time.Second); end.After(now) && (at.IsZero() || end.Before(at)) {
			at = end
		}
	}
	return at
}
