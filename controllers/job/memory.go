// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"maps"
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
	// worked is when the last run that did something read the Pods. It is zero if that run has
	// left something to do.
	worked time.Time
	active int // the Pods that were active after that run
	// stripped are Pods whose finalizers were removed, as long as the cache shows them with it.
	// The loop waits for the version that the server answers with. If a Pod that is being deleted
	// loses its last finalizer, that is the version before: the Pod is gone, and has no newer one.
	stripped map[types.UID]bool
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

// remember notes a plan whose status is written. A plan that leaves something to do, and one that
// ends the Job, is followed by the next one at once.
func (m *memories) remember(job *batchv1.Job, p *plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	worked := p.now
	if p.more || p.verdict != nil {
		worked = time.Time{}
	}
	key := object.KeyOf(job)
	known := m.of[key]
	if known.uid != job.UID {
		known = memory{uid: job.UID}
	}
	known.backoff, known.generation, known.worked, known.active = p.nextBackoff, job.Generation, worked, int(p.active)
	m.of[key] = known
}

// noteStripped notes Pods that have lost their finalizers, of a Job whose plan is remembered.
func (m *memories) noteStripped(job *batchv1.Job, pods []*corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := object.KeyOf(job)
	known := m.of[key]
	known.stripped = maps.Clone(known.stripped)
	for _, pod := range pods {
		if known.stripped == nil {
			known.stripped = map[types.UID]bool{}
		}
		known.stripped[pod.UID] = true
	}
	m.of[key] = known
}

// asStripped returns Pods of the cache without the finalizers that were removed. It forgets the
// others.
func (m *memories) asStripped(job *batchv1.Job, pods []*corev1.Pod) []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := object.KeyOf(job)
	known := m.of[key]
	if known.uid != job.UID || len(known.stripped) == 0 {
		return pods
	}
	still := map[types.UID]bool{}
	now := slices.Clone(pods)
	for i, pod := range now {
		if tracked(pod) && known.stripped[pod.UID] {
			still[pod.UID] = true
			now[i] = pod.DeepCopy()
			now[i].Finalizers = slices.DeleteFunc(now[i].Finalizers, func(name string) bool { return name == batchv1.JobTrackingFinalizer })
		}
	}
	known.stripped = still
	m.of[key] = known
	return now
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
