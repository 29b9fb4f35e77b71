// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Sum adds up what objects count for. The zero Sum is empty. It is not safe for concurrent
// use.
type Sum struct {
	objects map[types.UID]corev1.ResourceList
	used    corev1.ResourceList
	count   map[corev1.ResourceName]int // objects that count for a resource
}

// Set replaces what an object counts for, and returns what it counted for before. An object that
// counts for nothing, as one that was deleted, is forgotten. The Sum keeps the list, which must not
// be changed any more. Objects may have one list in common.
func (s *Sum) Set(uid types.UID, used corev1.ResourceList) (before corev1.ResourceList) {
	if s.objects == nil {
		s.objects = map[types.UID]corev1.ResourceList{}
		s.used, s.count = corev1.ResourceList{}, map[corev1.ResourceName]int{}
	}
	before = s.objects[uid]
	for name, q := range used {
		sum := s.used[name]
		sum.Add(q)
		s.used[name] = sum
		s.count[name]++
	}
	for name, q := range before {
		sum := s.used[name]
		sum.Sub(q)
		s.used[name] = sum
		if s.count[name]--; s.count[name] == 0 {
			delete(s.used, name)
			delete(s.count, name)
		}
	}
	if len(used) == 0 {
		delete(s.objects, uid)
		return before
	}
	s.objects[uid] = used
	return before
}

// Of returns what an object counts for, nil for nothing. The list is read-only.
func (s *Sum) Of(uid types.UID) corev1.ResourceList { return s.objects[uid] }

// Len returns the number of objects that count.
func (s *Sum) Len() int { return len(s.objects) }

// Used returns the sums of these resources. A resource that no object counts for is 0.
func (s *Sum) Used(names ...corev1.ResourceName) corev1.ResourceList {
	used := corev1.ResourceList{}
	for _, name := range names {
		q, ok := s.used[name]
		if !ok {
			q = number(0)
		}
		used[name] = q.DeepCopy()
	}
	return used
}

// Objects returns the UIDs of the objects that count, in any order. A full count forgets those
// that are not there any more.
func (s *Sum) Objects() []types.UID {
	return slices.Collect(maps.Keys(s.objects))
}
