// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"math"
	"time"
)

// zoneState says how much of a zone is down. One node down is that node's failure;
// many at once are more likely the failure of something between them and us, and
// moving all their Pods would make it worse.
type zoneState int

const (
	zoneNormal zoneState = iota
	zonePartlyDown
	zoneDown
)

// stateOf computes a zone's state from how many of its nodes are ready and not.
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle, ComputeZoneState.
func stateOf(ready, notReady int, threshold float64) zoneState {
	switch {
	case ready == 0 && notReady > 0:
		return zoneDown
	case notReady > 2 && float64(notReady)/float64(ready+notReady) >= threshold:
		return zonePartlyDown
	default:
		return zoneNormal
	}
}

// rate returns how many nodes a second are given a NoExecute taint in a zone of a
// state and size. A zone that is down whole, while others are not, is treated as
// one in which single nodes fail.
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle, setLimiterInZone.
func (o *Options) rate(state zoneState, size int) float64 {
	switch {
	case state != zonePartlyDown:
		return o.NodeEvictionRate
	case size > o.LargeClusterSizeThreshold:
		return o.SecondaryNodeEvictionRate
	default:
		return 0
	}
}

// bucket limits a rate. It holds one token at most: what was not done is not made
// up for in a burst. Source: k8s.io/kubernetes/pkg/controller/nodelifecycle/scheduler,
// EvictionRateLimiterBurst.
type bucket struct {
	rate   float64 // tokens a second; 0 or less is none at all
	tokens float64
	at     time.Time // when tokens was right
}

// set changes the rate from now on. After a time without tokens the first takes as
// long to come as any other.
func (b *bucket) set(rate float64, now time.Time) {
	if b.rate > 0 {
		b.tokens = min(1, b.tokens+b.rate*now.Sub(b.at).Seconds())
	}
	if rate <= 0 {
		b.tokens = 0
	}
	b.rate, b.at = rate, now
}

// take takes a token if there is one.
func (b *bucket) take() bool {
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// wait returns how long it takes, from the last set, until there is a token. It is
// 0 if there is one.
func (b *bucket) wait() time.Duration {
	switch {
	case b.tokens >= 1:
		return 0
	case b.rate <= 0:
		return math.MaxInt64
	}
	// Rounded up: a nanosecond too early would be a look for nothing.
	return time.Duration(math.Ceil((1 - b.tokens) / b.rate * float64(time.Second)))
}

// zone is what is known of a zone from one look to the next.
type zone struct {
	members         int // all its nodes
	ready, notReady int // those that count
	presumed        int // of notReady, those that are not confirmed
	state           zoneState
	limit           bucket
	waiting         []candidate // to be given a NoExecute taint
}

// candidate is a node that waits for a NoExecute taint.
type candidate struct {
	name   string
	health *health
}
