// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// model is a cluster with one Deployment: its API server, the ReplicaSet
// controller and the Pods. Every controller may lag behind, by any number of
// versions, but never behind its own writes.
type model struct {
	now         time.Time
	deployments []*appsv1.Deployment                 // versions
	sets        []map[types.UID]*appsv1.ReplicaSet   // versions of them all
	pods        [][]modelPod                         // versions of them all
	seen        struct{ deployment, sets, pods int } // versions that our controller cannot be behind of
	acted       map[types.UID]int                    // for each set, the version that its controller cannot be behind of
	choose      func(name string, low, high int) int // takes a number at random
	changed     func(what string)                    // is called when the Pods have changed
	made        int                                  // Pods so far
}

type modelPod struct {
	id          int
	set         types.UID
	version     string // of the template
	ready       bool
	terminating bool
}

func newModel(d *appsv1.Deployment, choose func(string, int, int) int) *model {
	return &model{
		now: began, deployments: []*appsv1.Deployment{d}, sets: []map[types.UID]*appsv1.ReplicaSet{{}}, pods: [][]modelPod{nil},
		acted: map[types.UID]int{}, choose: choose, changed: func(string) {},
	}
}

// broken is an image whose Pods never become ready.
const broken = "web:bad"

func last[T any](versions []T) T { return versions[len(versions)-1] }

func (m *model) deployment() *appsv1.Deployment { return last(m.deployments) }

// edit is what a user does.
func (m *model) edit(change func(*appsv1.Deployment)) {
	d := m.deployment().DeepCopy()
	change(d)
	if !apiequality.Semantic.DeepEqual(d.Spec, m.deployment().Spec) {
		d.Generation++
		m.deployments = append(m.deployments, d)
	}
}

// reconcile is one run of our controller, with informers that lag.
func (m *model) reconcile() {
	d := m.choose("deployment's version", m.seen.deployment, len(m.deployments)-1)
	s := m.choose("sets' version", m.seen.sets, len(m.sets)-1)
	p := m.choose("pods' version", m.seen.pods, len(m.pods)-1)
	m.reconcileAt(d, s, p)
}

func (m *model) reconcileAt(dAt, setsAt, podsAt int) {
	m.now = m.now.Add(time.Second)
	m.seen.deployment, m.seen.sets, m.seen.pods = dAt, setsAt, podsAt
	d := m.deployments[dAt]
	v := view{deployment: d, pods: map[types.UID][]*corev1.Pod{}, now: m.now}
	for _, set := range m.sets[setsAt] {
		v.sets = append(v.sets, set)
	}
	for _, pod := range m.pods[podsAt] {
		v.pods[pod.set] = append(v.pods[pod.set], &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	plan, err := decide(v)
	if err != nil {
		panic(err)
	}
	m.apply(d, plan)
}

// apply does what apply.go does, with the API server's conflicts.
func (m *model) apply(d *appsv1.Deployment, p plan) {
	sets := maps.Clone(last(m.sets))
	if p.create != nil && !m.createSet(sets, p.create) {
		return
	}
	for _, c := range p.changes {
		is := sets[c.set.UID]
		if is == nil || is.ResourceVersion != c.set.ResourceVersion {
			break // a conflict
		}
		next := is.DeepCopy()
		maps.Copy(next.Annotations, c.annotations)
		if size(next) != c.replicas || next.Spec.MinReadySeconds != c.minReadySeconds {
			next.Generation++
		}
		next.Spec.Replicas, next.Spec.MinReadySeconds = &c.replicas, c.minReadySeconds
		m.put(sets, next)
	}
	for _, set := range p.remove {
		if is := sets[set.UID]; is != nil && is.ResourceVersion == set.ResourceVersion {
			delete(sets, set.UID)
		}
	}
	m.sets = append(m.sets, sets)
	m.seen.sets = len(m.sets) - 1
	if d == m.deployment() {
		next := d.DeepCopy()
		next.Status = p.status
		next.Annotations = map[string]string{revisionAnnotation: p.revision}
		if !apiequality.Semantic.DeepEqual(next, d) {
			m.deployments = append(m.deployments, next)
			m.seen.deployment = len(m.deployments) - 1
		}
	}
}

// createSet returns false if there is a set of that name.
func (m *model) createSet(sets map[types.UID]*appsv1.ReplicaSet, set *appsv1.ReplicaSet) bool {
	for _, other := range sets {
		if other.Name == set.Name {
			return false
		}
	}
	set = set.DeepCopy()
	set.UID = types.UID(fmt.Sprintf("%s-%d", set.Name, len(m.sets)))
	set.Generation = 1
	set.CreationTimestamp = metav1.NewTime(m.now)
	m.put(sets, set)
	return true
}

func (m *model) put(sets map[types.UID]*appsv1.ReplicaSet, set *appsv1.ReplicaSet) {
	set.ResourceVersion = fmt.Sprintf("%d-%d", len(m.sets), set.Generation)
	sets[set.UID] = set
}

// runSet is one run of the ReplicaSet controller for a set. It creates or deletes
// some of the Pods that it should, and writes a status.
func (m *model) runSet(uid types.UID, version, most int) {
	m.acted[uid] = version
	set := m.sets[version][uid]
	if set == nil {
		return
	}
	for missing := size(set) - m.count(uid, living); missing > 0 && most > 0; missing, most = missing-1, most-1 {
		m.made++
		image := set.Spec.Template.Spec.Containers[0].Image
		m.setPods(append(slices.Clone(last(m.pods)), modelPod{id: m.made, set: uid, version: image}), "create "+image)
	}
	for surplus := m.count(uid, living) - size(set); surplus > 0 && most > 0; surplus, most = surplus-1, most-1 {
		pods := slices.Clone(last(m.pods))
		victim := -1
		for i, pod := range pods {
			if pod.set == uid && !pod.terminating && (victim < 0 || pods[victim].ready && !pod.ready) {
				victim = i
			}
		}
		pods[victim].terminating = true
		m.setPods(pods, "delete "+pods[victim].version)
	}
	is := last(m.sets)[uid]
	if is == nil {
		return
	}
	terminating := m.count(uid, func(p modelPod) bool { return p.terminating })
	ready := m.count(uid, func(p modelPod) bool { return p.ready && !p.terminating })
	status := appsv1.ReplicaSetStatus{
		Replicas: m.count(uid, living), ReadyReplicas: ready, AvailableReplicas: ready, TerminatingReplicas: &terminating,
		ObservedGeneration: max(is.Status.ObservedGeneration, set.Generation),
	}
	if !apiequality.Semantic.DeepEqual(is.Status, status) {
		next := is.DeepCopy()
		next.Status = status
		sets := maps.Clone(last(m.sets))
		m.put(sets, next)
		m.sets = append(m.sets, sets)
	}
}

func living(p modelPod) bool { return !p.terminating }

func (m *model) count(uid types.UID, which func(modelPod) bool) int32 {
	var n int32
	for _, pod := range last(m.pods) {
		if (uid == "" || pod.set == uid) && which(pod) {
			n++
		}
	}
	return n
}

func (m *model) setPods(pods []modelPod, what string) {
	m.pods = append(m.pods, pods)
	m.changed(what)
}

// kubelet lets some Pods become ready, and terminating ones go.
func (m *model) kubelet(pick func(modelPod) bool) {
	pods := slices.Clone(last(m.pods))
	before := len(pods)
	changed := false
	pods = slices.DeleteFunc(pods, func(p modelPod) bool { return p.terminating && pick(p) })
	for i, p := range pods {
		if !p.ready && !p.terminating && p.version != broken && pick(p) {
			pods[i].ready = true
			changed = true
		}
	}
	if changed || len(pods) != before {
		m.setPods(pods, "kubelet")
	}
}

// settle lets everybody run until nothing changes any more. It returns false if
// that does not happen.
func (m *model) settle() bool {
	for range 1000 {
		before := [3]int{len(m.deployments), len(m.sets), len(m.pods)}
		sets := last(m.sets)
		m.reconcileAt(len(m.deployments)-1, len(m.sets)-1, len(m.pods)-1)
		if maps.EqualFunc(sets, last(m.sets), func(a, b *appsv1.ReplicaSet) bool { return a == b }) {
			before[1] = len(m.sets)
		}
		for _, uid := range slices.Sorted(maps.Keys(last(m.sets))) {
			m.runSet(uid, len(m.sets)-1, 1000)
		}
		m.kubelet(func(modelPod) bool { return true })
		if before == [3]int{len(m.deployments), len(m.sets), len(m.pods)} {
			return true
		}
	}
	return false
}
