// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// Triggers remembers up to which change the endpoints of each Service have been written.
// The zero Triggers is empty. It is safe for concurrent use, with one goroutine at a time
// for each Service.
type Triggers struct {
	mu       sync.Mutex
	services map[object.Key]triggers
}

// triggers are the changes that are in the endpoints of a Service.
type triggers struct {
	service time.Time
	pods    map[string]int64 // by name, seconds since 1970: the API knows none smaller
}

// Next returns the time of the earliest change that is not in the endpoints yet: of a
// Pod's readiness, or that the Service was made. It is zero if there is none with a time,
// as when a Pod goes. For a Service that was not known it is the Service's creation time.
// The caller calls done once the endpoints are written; without it, the next call returns
// the same again.
//
// Source of the rules: k8s.io/endpointslice/util, trigger_time_tracker.go.
func (t *Triggers) Next(service *corev1.Service, pods []*corev1.Pod) (trigger time.Time, done func()) {
	key := object.KeyOf(service)
	t.mu.Lock()
	before, known := t.services[key]
	t.mu.Unlock()

	now := triggers{service: service.CreationTimestamp.Time, pods: make(map[string]int64, len(pods))}
	earliest := func(at time.Time) {
		if trigger.IsZero() || at.Before(trigger) {
			trigger = at
		}
	}
	for _, pod := range pods {
		c := podstate.Condition(pod, corev1.PodReady)
		if c == nil || c.LastTransitionTime.IsZero() {
			continue
		}
		at := c.LastTransitionTime.Unix()
		now.pods[pod.Name] = at
		if last, seen := before.pods[pod.Name]; !seen || at > last {
			earliest(c.LastTransitionTime.Time)
		}
	}
	if now.service.After(before.service) {
		earliest(now.service)
	}
	if !known {
		trigger = now.service
	}
	return trigger, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.services == nil {
			t.services = map[object.Key]triggers{}
		}
		t.services[key] = now
	}
}

// Forget forgets a Service that is gone.
func (t *Triggers) Forget(service object.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.services, service)
}

// Annotation returns how a time is written into an annotation, and false if there is
// none to write.
func Annotation(trigger time.Time) (string, bool) {
	if trigger.IsZero() {
		return "", false
	}
	return trigger.UTC().Format(time.RFC3339Nano), true
}
