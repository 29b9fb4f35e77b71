// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// How long the controller waits before it deletes a Pod that has failed again on the same node. A
// kubelet that refuses a Pod would otherwise refuse its successor, and so on, at full speed.
// Sources: k8s.io/kubernetes/cmd/kube-controller-manager/app, startDaemonSetController, and
// k8s.io/client-go/util/flowcontrol.
const (
	backoffFirst = time.Second
	backoffMost  = 15 * time.Minute
	// backoffKept is how long the failures of a node are remembered after the last one.
	backoffKept = 2 * backoffMost
)

// backoff remembers the failures of the Pods of one DaemonSet. Those of an older template, and
// those on a node that was replaced under its name, do not count.
type backoff struct {
	generation int64 // that the status has observed
	of         map[types.UID]failures
}

// failures are those of one node.
type failures struct {
	wait time.Duration
	last time.Time
}

// left returns how long a Pod that has failed on a node is still kept.
func (b *backoff) left(node types.UID, now time.Time) time.Duration {
	f, found := b.of[node]
	if !found {
		return 0
	}
	return max(f.last.Add(f.wait).Sub(now), 0)
}

// note records that a Pod that has failed on a node is deleted.
func (b *backoff) note(node types.UID, now time.Time) {
	if b.of == nil {
		b.of = map[types.UID]failures{}
	}
	f, found := b.of[node]
	if found && now.Sub(f.last) <= backoffKept {
		f.wait = min(2*f.wait, backoffMost)
	} else {
		f.wait = backoffFirst
	}
	f.last = now
	b.of[node] = f
}

// begin forgets what a template of another generation has done, and what was long ago.
func (b *backoff) begin(generation int64, now time.Time) {
	if b.generation != generation {
		b.generation, b.of = generation, nil
	}
	for node, f := range b.of {
		if now.Sub(f.last) > backoffKept {
			delete(b.of, node)
		}
	}
}
