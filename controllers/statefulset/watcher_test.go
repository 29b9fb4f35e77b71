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
	states    int
	broken    []string
}

// follow begins to watch. maxUnavailable is 1.
func follow(t *testing.T, s *scene, ordered bool) *watcher {
	t.Helper()
	w := &watcher{t: t, ordered: ordered, pods: map[int]*corev1.Pod{}, disturbed: map[types.UID]bool{}}
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
	return w
}

func (w *watcher) step(kind cache.EventKind, pod *corev1.Pod) {
	ordinal := ordinalOf(pod)
	was := w.pods[ordinal]
	switch {
	case kind == cache.Deleted:
		w.leaves(was, pod)
		delete(w.pods, ordinal)
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
	if was == nil || terminating(was) || w.disturbed[pod.UID] || podstate.Ended(was) || !w.ordered {
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
	w.t.Logf("%d states were checked", w.states)
}
