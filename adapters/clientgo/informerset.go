// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// informerSet has the informers of a factory, by type or resource. They are made once each, and
// started together.
type informerSet[K comparable] struct {
	mu       sync.Mutex
	all      map[K]cache.SharedIndexInformer
	making   map[K]chan struct{} // is closed when the informer of a key has been made
	started  map[K]bool
	tasks    sync.WaitGroup
	stopping bool
}

func newInformerSet[K comparable]() *informerSet[K] {
	return &informerSet[K]{
		all: map[K]cache.SharedIndexInformer{}, making: map[K]chan struct{}{}, started: map[K]bool{},
	}
}

// get returns the informer of a key, which the first call makes. The lock is not held meanwhile: it
// may take long, and may ask for other informers.
func (s *informerSet[K]) get(key K, build func() cache.SharedIndexInformer) cache.SharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.all[key] == nil {
		if made := s.making[key]; made != nil {
			s.unlocked(func() { <-made })
			continue
		}
		s.make(key, build)
	}
	return s.all[key]
}

// make makes the informer of a key. If build panics, the next caller makes it.
func (s *informerSet[K]) make(key K, build func() cache.SharedIndexInformer) {
	made := make(chan struct{})
	s.making[key] = made
	defer func() {
		delete(s.making, key)
		close(made)
	}()
	var informer cache.SharedIndexInformer
	s.unlocked(func() { informer = build() })
	s.all[key] = informer
}

// unlocked calls a function without the lock.
func (s *informerSet[K]) unlocked(call func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	call()
}

// Start is StartWithContext until a channel is closed.
func (s *informerSet[K]) Start(stop <-chan struct{}) {
	s.StartWithContext(wait.ContextForChannel(stop))
}

// StartWithContext starts the informers that have not been started, and returns at once. They run
// until ctx ends.
func (s *informerSet[K]) StartWithContext(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	for key, informer := range s.all {
		if !s.started[key] {
			s.started[key] = true
			s.tasks.Go(func() { informer.RunWithContext(ctx) })
		}
	}
}

// Shutdown starts no more informers, and waits until those that were started have ended. The
// caller ends the context that they run with.
func (s *informerSet[K]) Shutdown() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.tasks.Wait()
}

// running returns the informers that were started.
func (s *informerSet[K]) running() map[K]cache.SharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := map[K]cache.SharedIndexInformer{}
	for key := range s.started {
		running[key] = s.all[key]
	}
	return running
}

// awaitSync waits until the informers that were started have synced or ctx ends, and returns which
// have.
func (s *informerSet[K]) awaitSync(ctx context.Context) (synced map[K]bool, all bool) {
	running := s.running()
	checkers := make([]cache.DoneChecker, 0, len(running))
	for _, informer := range running {
		checkers = append(checkers, informer.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checkers...)
	synced, all = map[K]bool{}, true
	for key, informer := range running {
		synced[key] = informer.HasSynced()
		all = all && synced[key]
	}
	return synced, all
}

// WaitForCacheSync waits until the informers that were started have synced or the channel is
// closed, and returns which have.
func (s *informerSet[K]) WaitForCacheSync(stop <-chan struct{}) map[K]bool {
	synced, _ := s.awaitSync(wait.ContextForChannel(stop))
	return synced
}
