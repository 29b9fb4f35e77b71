// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
)

// longest is the longest time between two Events about one wait. The API server keeps an Event
// for an hour, so that a claim that still waits always has one.
const longest = 15 * time.Minute

// reminders decides when an Event about a wait is recorded: when the wait begins or its reason
// changes, after a period, and then each time after twice as long. kube-controller-manager records
// it in every period. After a restart it begins again. It is safe for concurrent use.
type reminders struct {
	period time.Duration

	mu   sync.Mutex
	last map[object.Key]reminder // of claims that wait
}

type reminder struct {
	uid   types.UID // of the claim
	event events.Planned
	next  time.Time
	wait  time.Duration
}

func newReminders(period time.Duration) *reminders {
	return &reminders{period: period, last: map[object.Key]reminder{}}
}

// due reports whether an Event about a claim is to be recorded now, and in which time the next
// one is.
func (r *reminders) due(claim *corev1.PersistentVolumeClaim, event events.Planned, now time.Time) (bool, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := object.KeyOf(claim)
	last := r.last[key]
	switch {
	case last.uid != claim.UID || last.event != event:
		last = reminder{uid: claim.UID, event: event, wait: r.period}
	case now.Before(last.next):
		return false, last.next.Sub(now)
	default:
		last.wait = min(2*last.wait, max(longest, r.period))
	}
	last.next = now.Add(last.wait)
	r.last[key] = last
	return true, last.wait
}

// forget is called when a claim does not wait any more, or is gone.
func (r *reminders) forget(claim object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, claim)
}
