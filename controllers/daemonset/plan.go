// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// view is what a decision about a DaemonSet depends on.
type view struct {
	set      *appsv1.DaemonSet
	revision revision
	places   []place           // all nodes, sorted by name
	pods     map[string][]*pod // by node, as byNode sorts them
	failed   *backoff          // read only
	burst    int
	now      time.Time

	byName map[string]place
}

// revision is the template of a DaemonSet as it is now.
type revision struct {
	hash       string
	generation string    // of the template; "" if the DaemonSet has none
	since      time.Time // when the revision was created
}

// has reports whether a Pod was created from the revision. One of the two labels is enough: the
// hash of a template changes with the version of Kubernetes, its generation does not.
// Source: k8s.io/kubernetes/pkg/controller/daemon/util, IsPodUpdated.
func (r revision) has(p *pod) bool {
	return r.hash != "" && p.hash == r.hash || r.generation != "" && p.generation == r.generation
}

// plan is what is to be done about a DaemonSet.
type plan struct {
	create []string  // the nodes on which a Pod is created
	remove []removal // the Pods that are deleted
	// after is how long until time alone changes the plan. 0 is never.
	after   time.Duration
	reasons []controller.Reason
	// invalid is what is wrong with the limits of rollouts. Only a change of the spec ends it.
	invalid error
}

// removal is a Pod that is deleted, and why.
type removal struct {
	pod  *pod
	why  cause
	node types.UID // of a Pod that has failed: for the back-off
}

// cause is why a Pod is deleted.
type cause int

const (
	surplus   cause = iota // another Pod serves the node, or none may
	failed                 // an Event reports it
	succeeded              // an Event reports it
	outdated               // a rollout replaces it
	broken                 // a rollout replaces it beyond its limits, because it is not available
)

// decide returns what is to be done. It changes nothing.
//
// The nodes come first: each gets the Pod that it is missing and loses those that it has too many.
// When that is done, and the informers show it, the rollout takes its next step.
//
// Limits that cannot be read stop rollouts alone.
func decide(v view) plan {
	var p plan
	limits, err := podlimits.DaemonSet(v.set, v.wanted())
	if err != nil {
		p.invalid = err
		p.because(codeInvalid, "no rollout takes place: {error}", "the spec changes", "error", err.Error())
	}
	surging := err == nil && v.surging()
	v.byName = make(map[string]place, len(v.places))
	for _, at := range v.places {
		v.byName[at.name] = at
	}
	for _, at := range v.places {
		p.keep(&v, at, surging)
	}
	p.strays(&v)
	if len(p.create) == 0 && len(p.remove) == 0 && p.invalid == nil {
		p.roll(&v, limits)
	}
	p.becomesAvailable(&v)
	p.explain(&v)
	// What exceeds the burst is for the next run, which the changes of this one start.
	p.create = p.create[:min(len(p.create), v.burst)]
	p.remove = p.remove[:min(len(p.remove), v.burst)]
	return p
}

// wanted returns on how many nodes a Pod is to run.
func (v *view) wanted() (n int32) {
	for _, at := range v.places {
		if at.run {
			n++
		}
	}
	return n
}

// surging reports whether a rollout may have two Pods on a node, whatever the number of nodes.
// Source: k8s.io/kubernetes/pkg/controller/daemon/util, AllowsSurge.
func (v *view) surging() bool {
	limits, err := podlimits.DaemonSet(v.set, 1)
	return err == nil && limits.Surge > 0
}

// minReady is how long a Pod must have been ready to be available.
func (v *view) minReady() time.Duration {
	return time.Duration(v.set.Spec.MinReadySeconds) * time.Second
}

// isAvailable reports whether a Pod is available now.
func (v *view) isAvailable(p *pod) bool {
	yes, _ := p.available(v.minReady(), v.now)
	return yes
}

// keep decides about the Pods of one node, without regard to a rollout.
// Source: k8s.io/kubernetes/pkg/controller/daemon, podsShouldBeOnNode.
func (p *plan) keep(v *view, at place, surging bool) {
	on := v.pods[at.name]
	switch {
	case at.run && len(on) == 0:
		p.create = append(p.create, at.name)
	case !at.stay:
		for _, one := range on {
			if !one.deleting {
				p.delete(one, surplus)
			}
		}
	case len(on) > 0:
		running, waits := p.bury(v, at, on)
		if surging {
			p.keepSurging(v, at, running, waits)
		} else {
			p.deleteAll(running[min(1, len(running)):], surplus)
		}
	}
}

// bury deletes the Pods of a node that have ended, and returns those that run. waits reports that
// a Pod that has failed is kept for a while.
func (p *plan) bury(v *view, at place, on []*pod) (running []*pod, waits bool) {
	for _, one := range on {
		switch {
		case one.deleting:
		case !one.ended():
			running = append(running, one)
		case !one.hasFailed():
			p.delete(one, succeeded)
		default:
			if left := v.failed.left(at.uid, v.now); left > 0 {
				waits = true
				p.again(left)
				p.backsOff(v, one, left)
				continue
			}
			p.remove = append(p.remove, removal{one, failed, at.uid})
		}
	}
	return running, waits
}

// keepSurging decides about the Pods that run on a node of a DaemonSet whose rollouts create the
// new Pod before the old one goes. Two Pods may run: an old one that is ready, and a new one that
// is not available yet.
func (p *plan) keepSurging(v *view, at place, running []*pod, waits bool) {
	if len(running) == 0 {
		// A Pod that is being deleted does not delay its successor. One that has failed does.
		if at.run && !waits {
			p.create = append(p.create, at.name)
		}
		return
	}
	var now, old *pod
	for _, one := range running {
		switch {
		case v.revision.has(one) && now == nil:
			now = one
		case !v.revision.has(one) && old == nil:
			old = one
		default:
			p.delete(one, surplus)
		}
	}
	switch {
	case now == nil || old == nil:
	case v.isAvailable(now):
		p.delete(old, outdated)
	case !old.ready:
		p.delete(old, broken)
	}
}

// strays deletes the Pods that no scheduler can bind, because their node does not exist. Bound
// Pods of such a node are for the Pod garbage collector.
// Source: k8s.io/kubernetes/pkg/controller/daemon, getUnscheduledPodsWithoutNode.
func (p *plan) strays(v *view) {
	var all []*pod
	for node, on := range v.pods {
		if _, exists := v.byName[node]; exists {
			continue
		}
		for _, one := range on {
			if !one.bound && !one.deleting {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b *pod) int { return strings.Compare(a.name, b.name) })
	p.deleteAll(all, surplus)
}

// becomesAvailable asks for another run when the next Pod becomes available.
func (p *plan) becomesAvailable(v *view) {
	for _, on := range v.pods {
		for _, one := range on {
			if yes, left := one.available(v.minReady(), v.now); !yes && left > 0 && !one.deleting {
				p.again(left)
			}
		}
	}
}

func (p *plan) delete(one *pod, why cause) { p.remove = append(p.remove, removal{pod: one, why: why}) }

func (p *plan) deleteAll(pods []*pod, why cause) {
	for _, one := range pods {
		p.delete(one, why)
	}
}

// again asks for another run, if none is asked for earlier.
func (p *plan) again(after time.Duration) {
	if p.after == 0 || after < p.after {
		p.after = after
	}
}
