// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"sync"
	"time"
)

// silences notes which metrics APIs did not answer the last request in time. While an API is silent, one request at a
// time waits for it, and all others fail at once: many HorizontalPodAutoscalers whose metrics come from it then occupy one
// worker, and the others go on. It is safe for concurrent use.
type silences struct {
	mu    sync.Mutex
	since map[string]time.Time // by API group
	asks  map[string]bool      // a request waits for the silent API
}

// enter is called before a request. It returns an error if the API is silent and another request waits for it. Otherwise
// the caller calls leave after the request, and says whether the API has answered.
func (s *silences) enter(group string) (leave func(answered bool), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, silent := s.since[group]
	if silent && s.asks[group] {
		return nil, fmt.Errorf("%s has not answered since %s, and another request waits for it", group, since.UTC().Format(time.RFC3339))
	}
	if silent {
		s.asks[group] = true
	}
	began := time.Now()
	return func(answered bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if silent {
			delete(s.asks, group)
		}
		if answered {
			delete(s.since, group)
		} else if s.since[group].IsZero() {
			s.since[group] = began
		}
	}, nil
}
