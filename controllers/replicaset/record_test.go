// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/wire"
)

// record is all that ever happened to Pods and ReplicaSets, as a watch of each sends it.
type record struct {
	mu    sync.Mutex
	steps []step
}

// step is an event of a watch. One of pod and set is not nil.
type step struct {
	version uint64
	event   string
	pod     *corev1.Pod
	set     *appsv1.ReplicaSet
}

func recordAll(t *testing.T, s *server) *record {
	t.Helper()
	c, err := client.New(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	var r record
	follow(t, c, s.pods, func(event string, pod *corev1.Pod) { r.add(t, pod.ResourceVersion, step{event: event, pod: pod}) })
	follow(t, c, s.sets, func(event string, set *appsv1.ReplicaSet) {
		r.add(t, set.ResourceVersion, step{event: event, set: set})
	})
	return &r
}

// follow calls note with each event of a resource from now on.
func follow[T object.Object](t *testing.T, c *client.Client, r *fakeapi.Resource, note func(event string, o T)) {
	t.Helper()
	watch, err := c.Watch(t.Context(), r.Resource, client.Selection{}, client.WatchOptions{ResourceVersion: r.ResourceVersion(), Timeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = watch.Close() // which ends its reader
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			event, err := watch.Next()
			if err != nil {
				if t.Context().Err() == nil {
					t.Errorf("the record of %s ends early: %v", r.Resource, err)
				}
				return
			}
			if event.Type == wire.Bookmark {
				continue
			}
			o := object.New[T]()
			if err := watch.Encoding.Decode(event.Object, o); err != nil {
				t.Error(err)
				return
			}
			note(event.Type, o)
		}
	}()
}

func (r *record) add(t *testing.T, version string, s step) {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		t.Error(err)
	}
	s.version = v
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

// check fails the test for each Pod that was created when there were as many as its
// ReplicaSet asked for at that version.
func (r *record) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.steps, func(a, b step) int { return cmp.Compare(a.version, b.version) })
	wanted, pods, created := map[types.UID]int{}, map[object.Key]*corev1.Pod{}, 0
	for _, s := range r.steps {
		switch {
		case s.set != nil:
			wanted[s.set.UID] = int(*s.set.Spec.Replicas)
			continue
		case s.event == wire.Deleted:
			delete(pods, object.KeyOf(s.pod))
			continue
		}
		pods[object.KeyOf(s.pod)] = s.pod
		owner := metav1.GetControllerOfNoCopy(s.pod)
		if s.event != wire.Added || owner == nil {
			continue
		}
		created++
		if now, want := active(slices.Collect(maps.Values(pods)), owner.UID), wanted[owner.UID]; now > want {
			t.Errorf("Pod %s of version %d is number %d of %d", s.pod.Name, s.version, now, want)
			r.trace(t, owner.UID, s.version)
			return
		}
	}
	if created == 0 {
		t.Error("the record has no Pod that was created")
	}
}

// trace logs what happened to the Pods of an owner up to a version. mu is held.
func (r *record) trace(t *testing.T, owner types.UID, version uint64) {
	t.Helper()
	for _, s := range r.steps {
		if s.pod == nil || s.version > version {
			continue
		}
		if ref := metav1.GetControllerOfNoCopy(s.pod); ref != nil && ref.UID == owner {
			t.Logf("%d %s %s (%s), %s, node %q, deleted %v", s.version, s.event, s.pod.Name, s.pod.UID,
				s.pod.Status.Phase, s.pod.Spec.NodeName, s.pod.DeletionTimestamp != nil)
		}
	}
}
