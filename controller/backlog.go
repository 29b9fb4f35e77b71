// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// lately is how long after a change its keys come before those of objects that did not change. It is several times
// the time in which a lease of the usual length expires.
const lately = time.Minute

// leastBacklog is how many keys are kept at least before they are sought anew.
const leastBacklog = 4096

// backlog has the keys that a loop keeps while it stands by, each once.
//
// In a cluster where objects come and go, keys of objects that are gone add up. A key does not say whether it is one of
// these: it may be that of another object. So when there are twice as many keys as the state had, the loop forgets all but those of
// the last minute, and maps the state again. A loop that starts without standing by has just the keys of the state.
type backlog[K comparable] struct {
	again   func(*backlog[K]) // maps the state again
	seeking sync.WaitGroup
	ended   chan struct{} // closed by end

	mu    sync.Mutex
	done  bool
	all   []backlogKey[K] // in order of arrival
	at    map[K]int       // in all
	least int             // of most
	most  int             // before the state is mapped again
	seeks bool            // the state is being mapped
}

type backlogKey[K comparable] struct {
	key     K
	how     workqueue.Add
	added   time.Time
	changed time.Time // when an event that was not of the first list came last
}

func (k *backlogKey[K]) lately(now time.Time) bool { return now.Sub(k.changed) <= lately }

func newBacklog[K comparable](least int, again func(*backlog[K])) *backlog[K] {
	return &backlog[K]{again: again, ended: make(chan struct{}), at: map[K]int{}, least: least}
}

// add keeps keys. It reports false when it is too late for that.
func (s *backlog[K]) add(how *workqueue.Add, keys []K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	now := time.Now()
	var changed time.Time
	if how.Priority > workqueue.Low {
		changed = now
	}
	for _, key := range keys {
		i, known := s.at[key]
		if !known {
			s.at[key] = len(s.all)
			s.all = append(s.all, backlogKey[K]{key: key, how: *how, added: now, changed: changed})
			continue
		}
		k := &s.all[i]
		if due := now.Add(how.After); due.Before(k.added.Add(k.how.After)) {
			k.added, k.how.After = now, how.After
		}
		if how.Priority >= k.how.Priority { // the last change explains a run better than the first list
			k.how.Priority, k.how.Cause, k.changed = how.Priority, how.Cause, changed
		}
	}
	if !s.seeks && s.most > 0 && len(s.all) > s.most {
		s.seeks = true
		s.seeking.Go(func() { s.again(s) })
	}
	return true
}

// seek has f, in a goroutine of its own, wait until the state is mapped for the first time.
func (s *backlog[K]) seek(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.seeks = true
		s.seeking.Go(f)
	}
}

// clear forgets the keys of objects that have not changed lately. It reports false when nothing is kept any more.
func (s *backlog[K]) clear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	before, now := s.all, time.Now()
	s.all, s.at = nil, map[K]int{}
	for i := range before {
		if k := &before[i]; k.lately(now) {
			s.at[k.key] = len(s.all)
			s.all = append(s.all, *k)
		}
	}
	return true
}

// found notes that the keys are those of the state.
func (s *backlog[K]) found() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.seeks = max(2*len(s.all), s.least), false
}

// end calls each with the keys, in order of arrival. None is kept any more. An event that comes meanwhile waits.
func (s *backlog[K]) end(each func(*backlogKey[K])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.done = true
		close(s.ended)
	}
	for i := range s.all {
		each(&s.all[i])
	}
	s.all, s.at = nil, nil
}

// len returns how many keys are kept.
func (s *backlog[K]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
