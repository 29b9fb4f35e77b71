// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"slices"
	"sync"

	"github.com/setpoint-io/setpoint/object"
)

// tracker knows which Pods use which media, and says which of them conflict. It keeps no
// conflicts, only uses: their number does not grow with the square of the Pods of a medium. It is
// safe for concurrent use.
type tracker struct {
	mu     sync.Mutex
	mounts map[string]bool // the CSI drivers that mount with labels
	pods   map[object.Key]record
	users  map[medium]users
}

// record is the last usage of a Pod.
type record struct {
	pod podID
	usage
}

// users are the Pods that use a medium, by how they do. There are few ways, and may be many Pods.
type users map[trait]map[podID]bool

func newTracker() *tracker {
	return &tracker{mounts: map[string]bool{}, pods: map[object.Key]record{}, users: map[medium]users{}}
}

// news is what a change has brought, which no Event has said yet.
type news struct {
	conflicts []conflict // of both Pods each, in order
	mixed     []string
}

// set replaces what is known of the Pod of that name. It returns what is new.
func (t *tracker) set(pod podID, u usage) news {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.pods[pod.key]
	if old.pod != pod {
		t.forget(old)
		old = record{}
	}
	var n news
	for _, was := range old.uses {
		if !slices.Contains(u.uses, was) {
			t.leave(pod, was)
		}
	}
	for _, now := range u.uses {
		if !slices.Contains(old.uses, now) {
			n.conflicts = append(n.conflicts, t.join(pod, now)...)
		}
	}
	for _, volume := range u.mixed {
		if !slices.Contains(old.mixed, volume) {
			n.mixed = append(n.mixed, volume)
		}
	}
	delete(t.pods, pod.key)
	if len(u.uses)+len(u.mixed) > 0 {
		t.pods[pod.key] = record{pod, u}
	}
	n.conflicts = inOrder(n.conflicts)
	return n
}

// remove removes a Pod that does not use its volumes any more.
func (t *tracker) remove(key object.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(t.pods[key])
	delete(t.pods, key)
}

// setDriver says whether a CSI driver mounts with labels. It returns the conflicts that its volumes
// have from now on, for all of them at once: no Pod is compared with one that was reconciled before
// the driver changed.
func (t *tracker) setDriver(name string, mounts bool) []conflict {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mounts[name] == mounts {
		return nil
	}
	if !mounts {
		delete(t.mounts, name)
		return nil
	}
	t.mounts[name] = true
	var found []conflict
	for m, u := range t.users {
		if m.driver == name {
			found = append(found, u.conflicts()...)
		}
	}
	return inOrder(found)
}

// all returns the conflicts that there are, each once.
func (t *tracker) all() []conflict {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []conflict
	for m, u := range t.users {
		if t.counts(m) {
			found = append(found, u.conflicts()...)
		}
	}
	return inOrder(found)
}

// counts reports whether a medium is mounted with labels.
func (t *tracker) counts(m medium) bool { return m.driver == "" || t.mounts[m.driver] }

// join adds a use of a Pod and returns its conflicts.
func (t *tracker) join(pod podID, now use) (found []conflict) {
	u := t.users[now.medium]
	if u == nil {
		u = users{}
		t.users[now.medium] = u
	}
	if t.counts(now.medium) {
		found = u.against(pod, now.trait)
	}
	if u[now.trait] == nil {
		u[now.trait] = map[podID]bool{}
	}
	u[now.trait][pod] = true
	return found
}

// leave removes a use of a Pod, and what is empty then.
func (t *tracker) leave(pod podID, was use) {
	u := t.users[was.medium]
	delete(u[was.trait], pod)
	if len(u[was.trait]) == 0 {
		delete(u, was.trait)
	}
	if len(u) == 0 {
		delete(t.users, was.medium)
	}
}

// forget removes all uses of a Pod.
func (t *tracker) forget(old record) {
	for _, was := range old.uses {
		t.leave(old.pod, was)
	}
}

// against returns the conflicts of one Pod with the users of a medium, as both Pods have them.
func (u users) against(pod podID, has trait) (found []conflict) {
	for differs, pods := range u {
		if len(between(pod, has, podID{}, differs)) == 0 {
			continue
		}
		for other := range pods {
			for _, c := range between(pod, has, other, differs) {
				found = append(found, c, c.turned())
			}
		}
	}
	return found
}

// conflicts returns the conflicts of all users of a medium.
func (u users) conflicts() (found []conflict) {
	for has, pods := range u {
		for differs, others := range u {
			if len(between(podID{}, has, podID{}, differs)) == 0 {
				continue
			}
			for pod := range pods {
				for other := range others {
					found = append(found, between(pod, has, other, differs)...)
				}
			}
		}
	}
	return found
}

// inOrder sorts conflicts and leaves out those of which there are several: two Pods may share
// several media.
func inOrder(found []conflict) []conflict {
	slices.SortFunc(found, conflict.compare)
	return slices.Compact(found)
}
