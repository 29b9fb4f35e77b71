// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import "slices"

// keySet collects the keys that an event leads to, each once, in order. It is used again for
// the next event.
type keySet[K comparable] struct {
	list []K
	seen map[K]struct{} // of list, once it is long
}

const (
	// fewKeys is up to how many a list is searched: nearly all events lead to one key or two.
	fewKeys = 16
	// keptKeys is how much room is kept from one event to the next.
	keptKeys = 1024
)

func (s *keySet[K]) add(key K) {
	if s.has(key) {
		return
	}
	s.list = append(s.list, key)
	if s.seen != nil {
		s.seen[key] = struct{}{}
	}
}

func (s *keySet[K]) has(key K) bool {
	if s.seen == nil && len(s.list) < fewKeys {
		return slices.Contains(s.list, key)
	}
	if s.seen == nil {
		s.seen = map[K]struct{}{}
		for _, k := range s.list {
			s.seen[k] = struct{}{}
		}
	}
	_, has := s.seen[key]
	return has
}

func (s *keySet[K]) clear() {
	clear(s.list)
	s.list, s.seen = s.list[:0], nil
	if cap(s.list) > keptKeys {
		s.list = nil
	}
}
