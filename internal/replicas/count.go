// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"time"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// counts are the counts of Pods in a status.
type counts struct {
	replicas     int // active Pods
	fullyLabeled int // of them, those that have all labels of the template
	ready        int // of them, those that are ready
	available    int // of the ready ones, those that have been so for long enough
	terminating  int // Pods that are being deleted
}

// failure is why not all Pods could be created or deleted.
type failure struct {
	reason string // FailedCreate or FailedDelete
	cause  error
}

func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return f.cause
}

// count counts Pods at a time, and says how long it is from then until the first of
// those that are ready becomes available, 0 if all are. minReady is how long a Pod
// must have been ready to be available.
func count(pods claimed, template map[string]string, minReady time.Duration, now time.Time) (counts, time.Duration) {
	c := counts{replicas: len(pods.active), terminating: pods.terminating}
	var next time.Duration
	for _, pod := range pods.active {
		if hasLabels(pod.Labels, template) {
			c.fullyLabeled++
		}
		since, ready := podstate.ReadySince(pod)
		if !ready {
			continue
		}
		c.ready++
		left := since.Add(minReady).Sub(now)
		switch {
		case minReady > 0 && since.IsZero():
			// The time since when is not known. It may be said later.
			left = minReady
		case minReady == 0 || left <= 0:
			c.available++
			continue
		}
		if next == 0 || left < next {
			next = left
		}
	}
	return c, next
}

// hasLabels reports whether all of want are in labels.
func hasLabels(labels, want map[string]string) bool {
	for key, value := range want {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
