// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"hash/maphash"
	"sync"

	"github.com/setpoint-io/setpoint/object"
)

// met is which owners this process has had a run for. It keeps a hash of each key, as a cluster has tens of thousands of ReplicaSets: two keys with
// one hash cost the second one a run that decodes more. It is safe for concurrent use.
type met struct {
	mu     sync.Mutex
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

// add reports whether the key is new.
func (m *met) add(key object.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hashes == nil {
		m.seed, m.hashes = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	hash := maphash.Comparable(m.seed, key)
	_, known := m.hashes[hash]
	m.hashes[hash] = struct{}{}
	return !known
}

func (m *met) forget(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hashes != nil {
		delete(m.hashes, maphash.Comparable(m.seed, key))
	}
}
