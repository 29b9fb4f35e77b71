// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

// clocks are those of all Pods whose time is running. The zero clocks is empty, and
// safe for concurrent use by runs for different Pods.
type clocks struct {
	mu sync.Mutex
	of map[object.Key]*clock
}

// look returns when a Pod must go. bounded is false if it may stay; stopped is then
// true if its time was running.
func (c *clocks) look(pod *corev1.Pod, taints []corev1.Taint, now time.Time) (deadline time.Time, bounded, stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := object.KeyOf(pod)
	running := c.of[key]
	if running != nil && running.uid != pod.UID {
		running = nil // of another Pod, which had the name before
	}
	next := running
	if next == nil {
		next = &clock{uid: pod.UID}
	}
	deadline, bounded = next.look(pod.Spec.Tolerations, taints, now)
	if !bounded {
		delete(c.of, key)
		return deadline, false, running != nil
	}
	if c.of == nil {
		c.of = map[object.Key]*clock{}
	}
	c.of[key] = next
	return deadline, true, false
}

// forget drops the clock of a Pod that is gone or going.
func (c *clocks) forget(key object.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, key)
}

// runs reports whether a Pod's time is running.
func (c *clocks) runs(key object.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[key] != nil
}
