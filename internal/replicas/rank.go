// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// candidate is what decides how soon a Pod is deleted.
type candidate struct {
	pod        *corev1.Pod
	unassigned bool
	phase      int
	ready      bool
	readySince time.Time
	cost       int
	neighbours int // active Pods of the owner's owner on its node
	restarts   int // the most of a container
	sidecars   int // the most of an init container that keeps running
}

// rank returns the Pods in the order in which they are to be deleted: those first
// that are missed least. neighbours counts related Pods by node; ignoreCost has what
// users say of that count for nothing. pods is not changed.
//
// Source of the order: k8s.io/kubernetes/pkg/controller, ActivePodsWithRanks.
func rank(pods []*corev1.Pod, neighbours map[string]int, now time.Time, ignoreCost bool) []*corev1.Pod {
	candidates := make([]candidate, len(pods))
	for i, pod := range pods {
		candidates[i] = newCandidate(pod, neighbours)
		if ignoreCost {
			candidates[i].cost = 0
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return compare(&a, &b, now) })
	ranked := make([]*corev1.Pod, len(pods))
	for i := range candidates {
		ranked[i] = candidates[i].pod
	}
	return ranked
}

func newCandidate(pod *corev1.Pod, neighbours map[string]int) candidate {
	c := candidate{
		pod:        pod,
		unassigned: pod.Spec.NodeName == "",
		phase:      phaseOrder(pod.Status.Phase),
		cost:       deletionCost(pod.Annotations),
		neighbours: neighbours[pod.Spec.NodeName],
	}
	c.readySince, c.ready = readySince(pod)
	c.restarts, c.sidecars = mostRestarts(pod)
	return c
}

// compare returns a number below zero if a is to be deleted before b.
//
// Ready and creation times count by the order of magnitude of their age: of Pods
// that have been there for about as long, the UID decides, and so chance, lest all of
// one zone or of one rollout go together. Equal times pass on to the next
// criterion. In mixtures of equal times and times that are about the same, the order
// is not transitive, upstream's is not either; sorting then still gives an order
// that holds for most pairs.
func compare(a, b *candidate, now time.Time) int {
	if c := trueFirst(a.unassigned, b.unassigned); c != 0 {
		return c
	}
	if c := cmp.Compare(a.phase, b.phase); c != 0 {
		return c
	}
	if c := trueFirst(b.ready, a.ready); c != 0 { // not ready first
		return c
	}
	if c := cmp.Compare(a.cost, b.cost); c != 0 {
		return c
	}
	if c := cmp.Compare(b.neighbours, a.neighbours); c != 0 { // crowded first
		return c
	}
	if a.ready && !a.readySince.Equal(b.readySince) {
		return youngFirst(a, b, a.readySince, b.readySince, now)
	}
	if c := cmp.Or(cmp.Compare(b.restarts, a.restarts), cmp.Compare(b.sidecars, a.sidecars)); c != 0 {
		return c
	}
	madeA, madeB := a.pod.CreationTimestamp.Time, b.pod.CreationTimestamp.Time
	if !madeA.Equal(madeB) {
		return youngFirst(a, b, madeA, madeB, now)
	}
	return 0
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// youngFirst compares two times that are not equal. One that is not known counts as
// the youngest.
func youngFirst(a, b *candidate, atA, atB, now time.Time) int {
	if atA.IsZero() || atB.IsZero() {
		return trueFirst(atA.IsZero(), atB.IsZero())
	}
	return cmp.Or(
		cmp.Compare(magnitude(now.Sub(atA)), magnitude(now.Sub(atB))),
		strings.Compare(string(a.pod.UID), string(b.pod.UID)),
	)
}

// magnitude is the binary logarithm of an age in nanoseconds, -1 of the future.
func magnitude(age time.Duration) int {
	if age <= 0 {
		return -1
	}
	return int(math.Log2(float64(age)))
}

// phaseOrder sorts phases: what is nearest to running is deleted last.
func phaseOrder(phase corev1.PodPhase) int {
	switch phase {
	case corev1.PodUnknown:
		return 1
	case corev1.PodRunning:
		return 2
	default: // Pending; Pods that have ended are not ranked
		return 0
	}
}

// deletionCost reads the annotation by which users say which Pods to keep: a 32-bit
// integer without plus sign and leading zeros. What is not one counts as 0.
// Source: k8s.io/kubernetes/pkg/apis/core/helper, GetDeletionCostFromPodAnnotations.
func deletionCost(annotations map[string]string) int {
	text, ok := annotations[corev1.PodDeletionCost]
	if !ok || text == "" || text[0] == '+' || (text[0] == '0' && text != "0") {
		return 0
	}
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int(cost)
}

// mostRestarts returns the most restarts of a container, and of a sidecar: an init
// container that is always restarted.
func mostRestarts(pod *corev1.Pod) (containers, sidecars int) {
	for i := range pod.Status.ContainerStatuses {
		containers = max(containers, int(pod.Status.ContainerStatuses[i].RestartCount))
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if isSidecar(pod, status.Name) {
			sidecars = max(sidecars, int(status.RestartCount))
		}
	}
	return containers, sidecars
}

func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}
