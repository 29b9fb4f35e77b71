// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// memory is what the controller remembers of a Job between two runs. It costs nothing but time to
// lose it.
type memory struct {
	uid        types.UID
	backoff    backoff
	generation int64
	worked     time.Time // when the last run did something; zero if it has left something to do
}

// memories are those of all Jobs. They are safe for concurrent use.
type memories struct {
	mu sync.Mutex
	of map[object.Key]memory
}

// get returns the memory of a Job. Another Job that has its name is new.
func (m *memories) get(job *batchv1.Job) (memory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.of[object.KeyOf(job)]
	return known, ok && known.uid == job.UID
}

// backoff returns the backoff of a Job, if it is known.
func (m *memories) backoff(job *batchv1.Job) (backoff, bool) {
	known, ok := m.get(job)
	return known.backoff, ok
}

// pause returns how long changes of a Job's Pods are collected before the next run. A change of
// the Job's spec does not wait.
func (m *memories) pause(job *batchv1.Job, now time.Time, batch time.Duration) time.Duration {
	known, ok := m.get(job)
	if !ok || known.worked.IsZero() || known.generation != job.Generation {
		return 0
	}
	return max(0, known.worked.Add(batch).Sub(now))
}

// remember notes that a run has ended well. more says that it has left something to do.
func (m *memories) remember(job *batchv1.Job, b backoff, now time.Time, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if more {
		now = time.Time{}
	}
	m.of[object.KeyOf(job)] = memory{uid: job.UID, backoff: b, generation: job.Generation, worked: now}
}

func (m *memories) forget(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}

// countedOf returns those of a Job's Pods that the status has already: they have no finalizer
// any more, or it lists them as uncounted.
func countedOf(job *batchv1.Job, pods []*corev1.Pod) []*corev1.Pod {
	var listed []types.UID
	if u := job.Status.UncountedTerminatedPods; u != nil {
		listed = slices.Concat(u.Succeeded, u.Failed)
	}
	var counted []*corev1.Pod
	for _, pod := range pods {
		if pod.Namespace == job.Namespace && (!tracked(pod) || slices.Contains(listed, pod.UID)) {
			counted = append(counted, pod)
		}
	}
	return counted
}
