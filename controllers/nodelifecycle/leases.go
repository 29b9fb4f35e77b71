// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// confirm reports whether a node that is silent by the Lease in the cache is silent by
// the server's too. A watch of Leases that lags makes every node seem silent, and
// evicting all their Pods is not to be undone. Where the server has another Lease, the
// cache is behind, and no node is judged until it has caught up.
//
// A node without a Lease is judged by its status alone. An error says that the server's
// Lease is not known.
//
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle, tryUpdateNodeHealth, and the
// feature gate NodeControllerLeaseCircuitBreaker.
func (r *reconciler) confirm(ctx context.Context, node *corev1.Node, cached cache.Item[*coordinationv1.Lease], now time.Time) (bool, error) {
	if r.waits(now) {
		return false, nil
	}
	if !r.trustLeases {
		live, err := r.leases.Server().Get(ctx, leaseOf(node.Name))
		switch {
		case client.AbsentAt(err, leaseOf(node.Name)):
		case err != nil:
			return false, fmt.Errorf("reading the Lease of node %s, which seems silent, from the server: %w", node.Name, err)
		default:
			if is, has := object.MetaOf(live).Version, versionOf(cached); is != has {
				r.wait(node.Name, is, has, now)
				return false, nil
			}
		}
	}
	r.monitor.confirm(node.Name, node.UID)
	return true, nil
}

// versionOf returns the version of a Lease in the cache, zero where there is none.
func versionOf(cached cache.Item[*coordinationv1.Lease]) object.Version {
	if !cached.Exists() {
		return ""
	}
	return cached.Meta().Version
}

// wait has no node judged until the cache has seen a version of the Leases.
func (r *reconciler) wait(node string, live, cached object.Version, now time.Time) {
	seen, drop := r.leases.Observed(live)
	if r.behind.until(live, now.Add(r.monitor.options.NodeMonitorGracePeriod), seen, drop) {
		r.log.Warn("the cache of Leases is behind the server; no node is marked silent until it has caught up",
			"node", node, "cached", cached, "server", live)
	}
}

// waits reports whether no node is to be judged, since the cache of Leases is behind.
func (r *reconciler) waits(now time.Time) bool {
	holds, caughtUp := r.behind.holds(now)
	if caughtUp {
		r.log.Warn("the cache of Leases has caught up; silent nodes are marked again")
	}
	return holds
}

// behind is what the cache of Leases has yet to see. It is safe for concurrent use.
type behind struct {
	mu      sync.Mutex
	waiting bool
	version object.Version  // that is waited for
	seen    <-chan struct{} // closed once the cache has seen it
	drop    func()          // ends the wait
	end     time.Time       // of the wait at the latest
}

// until begins to wait for a version, or waits for it instead of an older one. It reports
// whether nothing was waited for before. seen is closed when the version is seen, and drop
// releases it. The wait ends at some time in any case: a server that was restored from
// a backup may not reach the version for days.
func (b *behind) until(version object.Version, end time.Time, seen <-chan struct{}, drop func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := !b.waiting
	if !began {
		if b.version.AtLeast(version) {
			drop()
			return false
		}
		b.drop()
	}
	b.waiting, b.version, b.seen, b.drop, b.end = true, version, seen, drop, end
	return began
}

// holds reports whether something is waited for, and whether this call is the first to find
// that it has been seen.
func (b *behind) holds(now time.Time) (holds, caughtUp bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.waiting {
		return false, false
	}
	select {
	case <-b.seen:
		caughtUp = true
	default:
		if now.Before(b.end) {
			return true, false
		}
	}
	b.drop()
	b.waiting = false
	return false, caughtUp
}
