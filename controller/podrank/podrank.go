// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podrank

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// Options are what the order needs to know besides the Pods.
type Options struct {
	// Now is the time by which ages are told.
	Now time.Time
	// Neighbours counts, by name of the node, the Pods that do the same work: those of
	// the owner, say, or of all owners of one owner. Nil where it does not matter.
	Neighbours map[string]int
	// IgnoreCost has what users say, by the annotation pod-deletion-cost, count for
	// nothing.
	IgnoreCost bool
}

// New returns the reason by which ReplicaSets choose the Pods that they delete: those
// without a node go first, then those that are farther from running, are not ready, are
// cheap by their annotation, are on a crowded node, have become ready lately, have
// restarted often and have been made lately. It reads a Pod once and remembers what it
// read, as the reading is most of the work: it is for one [owned.Surplus], and not for
// concurrent use.
//
// Ages count by their order of magnitude: of Pods that have been there for about as
// long, the UID decides, and so chance, lest all of one zone or of one rollout go
// together. Equal times pass on to the next criterion. In mixtures of equal times and
// times that are about the same, the order is not transitive, upstream's is not either;
// sorting then still gives an order that holds for most pairs.
//
// Pods that have ended are not ranked by it: they serve no clients.
//
// Source of the order: k8s.io/kubernetes/pkg/controller, ActivePodsWithRanks.
func New(o Options) owned.Rank[*corev1.Pod] {
	candidates := map[*corev1.Pod]*candidate{}
	candidateOf := func(pod *corev1.Pod) *candidate {
		c := candidates[pod]
		if c == nil {
			c = newCandidate(pod, &o)
			candidates[pod] = c
		}
		return c
	}
	return func(a, b *corev1.Pod) int { return candidateOf(a).compare(candidateOf(b), o.Now) }
}

// candidate is what decides how soon a Pod is deleted.
type candidate struct {
	uid        types.UID
	unassigned bool
	phase      int
	ready      bool
	readySince time.Time
	cost       int
	neighbours int
	restarts   int // the most of a container
	sidecars   int // the most of an init container that keeps running
	made       time.Time
}

func newCandidate(pod *corev1.Pod, p *Options) *candidate {
	c := &candidate{
		uid:        pod.UID,
		unassigned: pod.Spec.NodeName == "",
		phase:      phaseOrder(pod.Status.Phase),
		neighbours: p.Neighbours[pod.Spec.NodeName],
		made:       pod.CreationTimestamp.Time,
	}
	if !p.IgnoreCost {
		c.cost = deletionCost(pod.Annotations)
	}
	c.readySince, c.ready = podstate.ReadySince(pod)
	c.restarts, c.sidecars = mostRestarts(pod)
	return c
}

// compare returns a number below zero if a is to be deleted before b.
func (a *candidate) compare(b *candidate, now time.Time) int {
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
	if !a.made.Equal(b.made) {
		return youngFirst(a, b, a.made, b.made, now)
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
		strings.Compare(string(a.uid), string(b.uid)),
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
