// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// watcher checks the Pods of a StatefulSet that starts at ordinal 0, at every resourceVersion.
type watcher struct {
	t       *testing.T
	ordered bool

	mu        sync.Mutex
	pods      map[int]*corev1.Pod
	disturbed map[types.UID]bool // Pods that the test has deleted or made fail
	lost      map[int]bool       // ordinals without a Pod because of the test
	wanted    bounds
	states    int
	rolled    int // available Pods that a rollout has deleted, Parallel
	broken    []string
}

// bounds are those that hold whatever state of the StatefulSet the controller has read.
type bounds struct {
	size        int // the smallest one
	unavailable int // the largest one
}

// follow begins to watch. With OrderedReady, maxUnavailable is 1.
func follow(t *testing.T, s *scene, ordered bool) *watcher {
	t.Helper()
	w := &watcher{t: t, ordered: ordered, pods: map[int]*corev1.Pod{}, disturbed: map[types.UID]bool{}, lost: map[int]bool{}}
	informer := cache.Informer[*corev1.Pod](managertest.Run(t, shared.Get(t).Config), cache.InNamespace(s.key.Namespace))
	_, err := informer.AddHandler(func(e cache.Event[*corev1.Pod]) {
		pod, err := e.Item().Object()
		if err != nil {
			t.Error(err)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.states++
		w.step(e.Kind, pod)
	}, cache.HandlerOptions{Name: t.Name(), EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// expect sets the bounds of which the controller may have read one.
func (w *watcher) expect(all []bounds) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = all[0]
	for _, b := range all[1:] {
		w.wanted.size, w.wanted.unavailable = min(w.wanted.size, b.size), max(w.wanted.unavailable, b.unavailable)
	}
}

// catchUp waits until the watcher has seen Pods, and that they serve.
func (w *watcher) catchUp(pods map[string]types.UID) {
	w.t.Helper()
	controlplanetest.Eventually(w.t, "the watcher has seen the Pods", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		serve := 0
		for _, pod := range w.pods {
			if serving(pod) && pods[pod.Name] == pod.UID {
				serve++
			}
		}
		return serve == len(pods)
	})
}

func (w *watcher) step(kind cache.EventKind, pod *corev1.Pod) {
	ordinal := ordinalOf(pod)
	was := w.pods[ordinal]
	w.identity(ordinal, pod)
	switch {
	case kind == cache.Deleted:
		w.leaves(was, pod)
		delete(w.pods, ordinal)
		w.lost[ordinal] = w.disturbed[pod.UID]
		return
	case was == nil:
		w.comes(ordinal, pod)
	case was.UID != pod.UID:
		w.breaks(pod, "%s has its name: two Pods of an ordinal", was.UID)
	case terminating(pod) && !terminating(was):
		w.leaves(was, pod)
	}
	w.pods[ordinal] = pod
}

// comes checks the creation of a Pod: with OrderedReady, all below it are ready.
func (w *watcher) comes(ordinal int, pod *corev1.Pod) {
	for below := range ordinal {
		if p := w.pods[below]; w.ordered && (p == nil || !serving(p)) {
			w.breaks(pod, "it was created while the Pod of ordinal %d was not ready", below)
		}
	}
}

// leaves checks the deletion of a Pod by the controller: of those with a lower ordinal none is
// being deleted, and no other Pod is missing or not available.
func (w *watcher) leaves(was, pod *corev1.Pod) {
	if was == nil || terminating(was) || w.disturbed[pod.UID] || podstate.Ended(was) {
		return
	}
	if !w.ordered {
		w.rolls(was)
		return
	}
	for ordinal, p := range w.pods {
		if ordinal != ordinalOf(pod) && !serving(p) {
			w.breaks(pod, "it was deleted while %s was not available", p.Name)
		}
	}
	for below := range ordinalOf(pod) {
		if w.pods[below] == nil {
			w.breaks(pod, "it was deleted while the Pod of ordinal %d was missing", below)
		}
	}
}

// rolls checks the deletion of a wanted Pod by the rollout, Parallel: so many Pods may be
// unavailable, and a Pod that is not available may go at any time.
func (w *watcher) rolls(pod *corev1.Pod) {
	if ordinalOf(pod) >= w.wanted.size || !serving(pod) {
		return
	}
	w.rolled++
	unavailable := []string{pod.Name}
	for ordinal := range w.wanted.size {
		p := w.pods[ordinal]
		// The controller may not know yet what the test did to a Pod. It knows what it has deleted
		// and created itself.
		if ordinal == ordinalOf(pod) || p == nil && w.lost[ordinal] || p != nil && (serving(p) || w.disturbed[p.UID]) {
			continue
		}
		unavailable = append(unavailable, podName("web", ordinal))
	}
	if len(unavailable) > w.wanted.unavailable {
		w.breaks(pod, "it was deleted, and now %d of at most %d Pods are not available: %v", len(unavailable), w.wanted.unavailable, unavailable)
	}
}

// identity checks what makes a Pod the one of its ordinal.
func (w *watcher) identity(ordinal int, pod *corev1.Pod) {
	name := podName("web", ordinal)
	for label, value := range identity(name, ordinal) {
		if pod.Labels[label] != value {
			w.breaks(pod, "the label %s is %q, want %q", label, pod.Labels[label], value)
		}
	}
	if pod.Name != name || pod.Spec.Hostname != name || pod.Spec.Subdomain != "web" || revisionOf(pod) == "" {
		w.breaks(pod, "ordinal %d has the host name %q, the subdomain %q and the revision %q", ordinal, pod.Spec.Hostname, pod.Spec.Subdomain, revisionOf(pod))
	}
}

func (w *watcher) breaks(pod *corev1.Pod, format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf("resourceVersion %s: %s: ", pod.ResourceVersion, pod.Name)+fmt.Sprintf(format, args...))
}

func (w *watcher) end() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.broken {
		w.t.Error(text)
	}
	if w.states < 10 {
		w.t.Errorf("only %d states were checked", w.states)
	}
	if !w.ordered && w.rolled == 0 {
		w.t.Error("no rollout has deleted an available Pod")
	}
	w.t.Logf("%d states were checked, and %d deletions by a rollout, Parallel", w.states, w.rolled)
}
