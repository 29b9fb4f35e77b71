// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// mostGone is how many Pods are remembered.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim, maxUIDCacheEntries.
const mostGone = 500

// gone remembers the UIDs of the last Pods that were deleted. It saves a request to the server for
// each reservation of such a Pod. The zero gone is empty, and safe for concurrent use.
type gone struct {
	mu   sync.Mutex
	uids map[types.UID]struct{}
	ring []types.UID
	next int // of ring, once it is full
}

func (g *gone) add(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.uids == nil {
		g.uids = map[types.UID]struct{}{}
	}
	if _, known := g.uids[uid]; known {
		return
	}
	g.uids[uid] = struct{}{}
	if len(g.ring) < mostGone {
		g.ring = append(g.ring, uid)
		return
	}
	delete(g.uids, g.ring[g.next])
	g.ring[g.next] = uid
	g.next = (g.next + 1) % mostGone
}

func (g *gone) has(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.uids[uid]
	return known
}
