// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
)

// settled are the policies that this process has checked and whose kinds are all known. The zero value has none, and it is safe for
// concurrent use.
type settled struct {
	mu   sync.Mutex
	keys map[object.Key]bool
}

func (s *settled) has(key object.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

func (s *settled) set(key object.Key, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !is {
		delete(s.keys, key)
		return
	}
	if s.keys == nil {
		s.keys = map[object.Key]bool{}
	}
	s.keys[key] = true
}

// shareTime is how long an answer of discovery serves the first looks at policies. A new process looks at all policies at once, and an
// answer is some 100 KB. A kind that is defined meanwhile is looked for again, as one that is not served.
const shareTime = 10 * time.Second

// served asks which kinds the server serves. It is safe for concurrent use.
type served struct {
	discover func(context.Context) ([]client.Served, error)
	turn     chan struct{} // has room for the run that asks for all: a mutex would not end with the context of the others
	last     found
	at       time.Time
}

// found is an answer of discovery.
type found struct {
	kinds  []client.Served
	failed map[schema.GroupVersion]error
}

func newServed(discover func(context.Context) ([]client.Served, error)) served {
	return served{discover: discover, turn: make(chan struct{}, 1)}
}

// ask returns which kinds the server serves, and what it could not describe. If shared is set, the answer may be as old as shareTime.
func (s *served) ask(ctx context.Context, shared bool) (found, error) {
	if !shared {
		return s.now(ctx)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return found{}, context.Cause(ctx)
	}
	if s.at.IsZero() || time.Since(s.at) >= shareTime {
		f, err := s.now(ctx)
		if err != nil {
			return found{}, err
		}
		s.last, s.at = f, time.Now()
	}
	return s.last, nil
}

func (s *served) now(ctx context.Context) (found, error) {
	kinds, err := discovery.Ask(ctx, s.discover)
	if partial, ok := errors.AsType[*client.DiscoveryError](err); ok {
		return found{kinds, partial.Failed}, nil
	}
	return found{kinds: kinds}, err
}
