// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// Waits between failed attempts of an operation, as those of the CSI sidecars.
// Source: sigs.k8s.io/sig-storage-lib-external-provisioner, --retry-interval-start and
// --retry-interval-max of external-provisioner.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// attempts counts the attempts of operations. It is safe for concurrent use.
type attempts struct {
	mu  sync.Mutex
	all map[attemptKey]*attempt
}

type attemptKey struct {
	object    object.Key
	operation string
}

type attempt struct {
	uid    types.UID
	wanted string // what the operation is to reach; another one begins again
	since  time.Time
	failed int
	next   time.Time
}

// verdict is how an attempt goes.
type verdict struct {
	first bool          // it is the first attempt
	done  bool          // the operation succeeds now
	err   error         // it fails now
	wait  time.Duration // in which time it is to be looked at again; 0 is never
}

// judge says how an operation on an object goes at a time.
func (a *attempts) judge(key object.Key, uid types.UID, operation, wanted string, k knobs, now time.Time) verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := attemptKey{key, operation}
	one := a.all[at]
	v := verdict{}
	if one == nil || one.uid != uid || one.wanted != wanted {
		one = &attempt{uid: uid, wanted: wanted, since: now}
		if a.all == nil {
			a.all = map[attemptKey]*attempt{}
		}
		a.all[at] = one
		v.first = true
	}
	due := one.since.Add(k.after)
	if one.next.After(due) {
		due = one.next
	}
	switch {
	case k.answer == answerNever && k.refused == nil:
	case now.Before(due):
		v.wait = due.Sub(now)
	case k.refused != nil:
		v.err = k.refused
		v.wait = one.fail(now)
	case k.answer == answerError:
		v.err = fmt.Errorf("rpc error: code = Internal desc = simulated: annotation %s%s=%s", Prefix, operation, answerError)
		v.wait = one.fail(now)
	case one.failed < k.failed:
		v.err = fmt.Errorf("rpc error: code = Internal desc = simulated: attempt %d of %d that fail (%s%s%s)", one.failed+1, k.failed, Prefix, operation, failFirst)
		v.wait = one.fail(now)
	default:
		v.done = true
	}
	return v
}

// fail counts an attempt that has failed, and returns the time until the next one.
func (o *attempt) fail(now time.Time) time.Duration {
	wait := lastRetry
	if o.failed < 10 {
		wait = min(firstRetry<<o.failed, lastRetry)
	}
	o.failed++
	o.next = now.Add(wait)
	return wait
}

// refuse counts an attempt that failed for another reason than its knobs.
func (a *attempts) refuse(key object.Key, operation string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.all[attemptKey{key, operation}]; one != nil {
		return one.fail(now)
	}
	return firstRetry
}

// forget is called when an operation is over, or its object is gone.
func (a *attempts) forget(key object.Key, operations ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, operation := range operations {
		delete(a.all, attemptKey{key, operation})
	}
}
