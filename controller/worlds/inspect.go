// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// State is what is known of a key, for debug pages.
type State[K comparable] struct {
	Key       K
	Knowledge Knowledge
	Running   *Operation // nil if none is in progress
	Failed    *Operation // nil unless the last one failed
}

// Operations returns the keys with an operation in progress or one that failed, those that began
// first before the others. The caller owns the result.
func (w *World[K, A]) Operations() []State[K] {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []State[K]
	for key, t := range w.things {
		if t.running == nil && t.failed == nil {
			continue
		}
		s := State[K]{Key: key, Knowledge: t.knowledge}
		if t.running != nil {
			s.Running = new(*t.running)
		}
		if t.failed != nil {
			s.Failed = new(*t.failed)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b State[K]) int {
		return cmp.Or(a.since().Compare(b.since()), cmp.Compare(fmt.Sprint(a.Key), fmt.Sprint(b.Key)))
	})
	return all
}

func (s State[K]) since() time.Time {
	if s.Running != nil {
		return s.Running.Since
	}
	return s.Failed.Since
}

// Lines describes up to limit of the Operations, one a line. It fits controller.Shows.
func (w *World[K, A]) Lines(limit int) (lines []string) {
	all := w.Operations()
	for _, s := range all[:min(limit, len(all))] {
		lines = append(lines, s.String())
	}
	if more := len(all) - limit; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// String describes the state in a line.
func (s State[K]) String() string {
	text := fmt.Sprintf("%v (%s)", s.Key, s.Knowledge)
	if r := s.Running; r != nil {
		text += fmt.Sprintf(": %s in progress for %s", r.Name, time.Since(r.Since).Round(time.Millisecond))
		if !r.Until.IsZero() {
			text += fmt.Sprintf(", for at most %s", r.Until.Sub(r.Since))
		}
	}
	if f := s.Failed; f != nil {
		text += fmt.Sprintf(": %s has failed %d times in a row and may be tried again in %s: %v",
			f.Name, f.Failures, max(time.Until(f.Until), 0).Round(time.Millisecond), f.Err)
	}
	return text
}
