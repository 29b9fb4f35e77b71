// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/nodestate"
	"github.com/setpoint-io/setpoint/object"
)

// wantsBalance indexes the Services that request their endpoints to be shared out to the
// zones.
func wantsBalance(item cache.Item[*corev1.Service]) ([]string, error) {
	service, err := item.Object()
	if err != nil || !asksForBalance(service.Annotations) {
		return nil, err
	}
	return []string{""}, nil
}

// asksForBalance reports whether a Service's annotations request its endpoints to be
// shared out to the zones. The older annotation wins.
func asksForBalance(annotations map[string]string) bool {
	mode, ok := annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		mode = annotations[corev1.AnnotationTopologyMode]
	}
	return mode == "Auto" || mode == "auto"
}

// balancedServices adds the Services whose endpoints are shared out to the zones: a Node
// concerns all of them.
func (r *reconciler) balancedServices(_ cache.Item[*corev1.Node], add func(object.Key)) {
	for key := range r.balanced.Find("") {
		add(key)
	}
}

// sharesChange chooses the changes of Nodes that the shares of zones depend on, if there are
// any.
func (r *reconciler) sharesChange(e cache.Event[*corev1.Node]) bool {
	for range r.balanced.Find("") {
		return e.Kind != cache.Updated || weighsOtherwise(e)
	}
	return false
}

// weighsOtherwise reports whether a Node counts otherwise than before.
func weighsOtherwise(e cache.Event[*corev1.Node]) bool {
	old, err := e.Old.Object()
	if err != nil {
		return true
	}
	now, err := e.New.Object()
	if err != nil {
		return true
	}
	return weigh(old) != weigh(now)
}

// weight is what of a Node the shares of zones depend on.
type weight struct {
	counts bool // it is ready and runs Pods of users
	zone   string
	cpu    int64 // thousandths of one
}

func weigh(node *corev1.Node) weight {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, excluded := node.Labels[label]; excluded {
			return weight{}
		}
	}
	if !nodestate.Ready(node) {
		return weight{}
	}
	return weight{true, node.Labels[corev1.LabelTopologyZone], node.Status.Allocatable.Cpu().MilliValue()}
}

// zonesFor returns the shares of the zones if a Service's endpoints are to be shared out,
// and else nil. It reads all Nodes; few Services request it.
func (r *reconciler) zonesFor(service *corev1.Service) *zones {
	if !asksForBalance(service.Annotations) {
		return nil
	}
	var weights []weight
	for _, item := range r.nodes.Snapshot().All() {
		if node, err := item.Object(); err == nil {
			weights = append(weights, weigh(node))
		}
	}
	return zonesOf(weights)
}

// zonesOf adds up Nodes. One Node of which zone or CPU are not known makes the shares
// unknown, and so does a cluster of one zone.
func zonesOf(weights []weight) *zones {
	cpu := map[string]int64{}
	var sum int64
	for _, w := range weights {
		if !w.counts {
			continue
		}
		if w.zone == "" || w.cpu == 0 {
			return &zones{}
		}
		cpu[w.zone] += w.cpu
		sum += w.cpu
	}
	if len(cpu) < 2 {
		return &zones{}
	}
	z := &zones{shares: map[string]float64{}}
	for zone, n := range cpu {
		z.shares[zone] = float64(n) / float64(sum)
	}
	return z
}

// Reasons of Events about sharing.
// Source: k8s.io/endpointslice/topologycache, EventBuilder.
const (
	reasonHintsDisabled = "TopologyAwareHintsDisabled"
	reasonHintsEnabled  = "TopologyAwareHintsEnabled"
)

// actionUpdate is the action of all Events about Services.
const actionUpdate = "UpdateEndpointSlices"

// balance remembers which Services have their endpoints shared out, for Events when that
// begins and ends. The zero balance is none.
type balance struct {
	mu   sync.Mutex
	done map[object.Key]bool
}

func (b *balance) forget(key object.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.done, key)
}

// tell returns the Events of a run with these notes: none for a Service that does not
// request sharing.
func (b *balance) tell(key object.Key, notes []note) events.List {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, now := b.done[key], false
	var all events.List
	for _, n := range notes {
		if n.disabled != "" {
			all.Warning(reasonHintsDisabled, actionUpdate, "%s, addressType: %s", n.disabled, n.family)
			continue
		}
		now = true
		if !before {
			all.Normal(reasonHintsEnabled, actionUpdate, "Topology Aware Hints has been enabled, addressType: %s", n.family)
		}
	}
	if before && len(notes) == 0 {
		all.Warning(reasonHintsDisabled, actionUpdate, "Topology Aware Hints has been disabled")
	}
	if now && !before {
		if b.done == nil {
			b.done = map[object.Key]bool{}
		}
		b.done[key] = true
	} else if !now {
		delete(b.done, key)
	}
	return all
}
