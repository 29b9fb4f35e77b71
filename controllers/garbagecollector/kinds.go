// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
)

// kinds is what the server serves, with the monitor that watches each kind. It is safe for concurrent
// use.
type kinds struct {
	mu       sync.RWMutex
	served   map[schema.GroupKind]object.Resource
	monitors map[schema.GroupKind]*monitor
}

// resource implements world.
func (k *kinds) resource(of kind) (object.Resource, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	r, ok := k.served[of.Value().GroupKind()]
	return r, ok
}

// shown implements world.
func (k *kinds) shown(t target) (object.Meta, bool) {
	k.mu.RLock()
	m := k.monitors[t.kind.Value().GroupKind()]
	k.mu.RUnlock()
	if m == nil {
		return object.Meta{}, false
	}
	return m.informer.Handle().Meta(t.key)
}

// serve notes what the server serves, and reports whether that is new.
func (k *kinds) serve(served map[schema.GroupKind]object.Resource) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.served
	k.served = served
	return !maps.Equal(before, served)
}

// set changes the kinds and their monitors.
func (k *kinds) set(change func(*kinds)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.monitors == nil {
		k.monitors = map[schema.GroupKind]*monitor{}
	}
	change(k)
}

// all returns the monitors.
func (k *kinds) all() []*monitor {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.Collect(maps.Values(k.monitors))
}
