// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// pod is what a decision needs to know of a Pod.
type pod struct {
	namespace, name string
	uid             types.UID
	node            string // that it is bound to, or pinned to
	bound           bool
	created         time.Time
	phase           corev1.PodPhase
	deleting        bool
	ready           bool
	readySince      time.Time
	hash            string // of the revision that it was created from
	generation      string // of the template that it was created from
	homeless        string // what the scheduler says, if it finds the Pod no place
}

func newPodOf(o *corev1.Pod) *pod {
	p := &pod{
		namespace: o.Namespace, name: o.Name, uid: o.UID,
		node: nodeOf(&o.Spec), bound: o.Spec.NodeName != "",
		created: o.CreationTimestamp.Time, phase: o.Status.Phase, deleting: o.DeletionTimestamp != nil,
		hash: o.Labels[hashLabel], generation: o.Labels[generationLabel], homeless: unschedulable(o),
	}
	p.readySince, p.ready = podstate.ReadySince(o)
	return p
}

// alike reports whether a DaemonSet counts two states of a Pod alike. It ignores that the scheduler
// has bound the Pod to its node, and the exact message of the scheduler.
func (p *pod) alike(other *pod) bool {
	a, b := *p, *other
	a.bound, b.bound = false, false
	if a.homeless != "" && b.homeless != "" {
		a.homeless = b.homeless
	}
	return a == b
}

// unschedulable returns the message of the scheduler if it finds no place for a Pod.
func unschedulable(o *corev1.Pod) string {
	c := podstate.Condition(o, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// ended reports whether all containers have ended for good.
func (p *pod) ended() bool { return podstate.Final(p.phase) }

// hasFailed reports whether a Pod has ended by a failure.
func (p *pod) hasFailed() bool { return p.phase == corev1.PodFailed }

// counts reports whether the DaemonSet has anything to do with a Pod: one that has ended and is
// being deleted only waits for its finalizers.
func (p *pod) counts() bool { return !p.ended() || !p.deleting }

// available returns whether a Pod has been ready for a time, and, of one that is ready and has
// not, how long that still takes. If the Pod does not say since when, it takes the whole time.
// Source: k8s.io/kubernetes/pkg/api/v1/pod, IsPodAvailable.
func (p *pod) available(minReady time.Duration, now time.Time) (yes bool, left time.Duration) {
	switch {
	case !p.ready:
		return false, 0
	case minReady == 0:
		return true, 0
	case p.readySince.IsZero():
		return false, minReady
	}
	left = max(p.readySince.Add(minReady).Sub(now), 0)
	return left == 0, left
}

// byAge sorts the Pods of a node: those that are bound come first, then the oldest.
// Source: k8s.io/kubernetes/pkg/controller/daemon, podByCreationTimestampAndPhase.
func byAge(a, b *pod) int {
	if a.bound != b.bound {
		if a.bound {
			return -1
		}
		return 1
	}
	return cmp.Or(a.created.Compare(b.created), strings.Compare(a.name, b.name))
}

// byNode sorts Pods into their nodes, and leaves out those that do not count or have no node.
func byNode(pods []*pod) map[string][]*pod {
	nodes := map[string][]*pod{}
	for _, p := range pods {
		if p.counts() && p.node != "" {
			nodes[p.node] = append(nodes[p.node], p)
		}
	}
	for _, on := range nodes {
		slices.SortFunc(on, byAge)
	}
	return nodes
}

// reader reads the Pods of one DaemonSet. It decodes a Pod once after each of its changes.
type reader struct {
	seen    map[types.UID]reading
	decoded int // how many Pods were decoded, for tests
}

type reading struct {
	item cache.Item[*corev1.Pod]
	pod  *pod
}

// read returns what the items say. It forgets the Pods that are not among them.
func (r *reader) read(items []cache.Item[*corev1.Pod]) ([]*pod, error) {
	seen := make(map[types.UID]reading, len(items))
	all := make([]*pod, 0, len(items))
	for _, item := range items {
		uid := item.Meta().UID
		is := r.seen[uid]
		if is.pod == nil || is.item != item {
			o, err := item.Object()
			if err != nil {
				return nil, err // a Pod that does not count would be created again
			}
			r.decoded++
			is = reading{item, newPodOf(o)}
		}
		seen[uid] = is
		all = append(all, is.pod)
	}
	r.seen = seen
	return all, nil
}

// identity returns as much of a Pod that was read as its deletion needs.
func (r *reader) identity(p *pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: p.name, UID: p.uid, ResourceVersion: string(r.seen[p.uid].item.Meta().Version),
	}}
}
