// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// key names what a worker looks after.
type key struct {
	node bool
	name types.NamespacedName
}

func podKey(pod *corev1.Pod) key {
	return key{name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}}
}

func nodeKey(name string) key { return key{node: true, name: types.NamespacedName{Name: name}} }

// store is what is known of the cluster: the simulated Nodes and the Pods bound
// to any Node. It is safe for concurrent use; the objects in it are not changed.
//
// A state is handed to one worker at a time, by the queue, and what is in it
// besides the object belongs to that worker.
type store struct {
	mu        sync.Mutex
	nodes     map[string]*nodeState
	pods      map[types.NamespacedName]*podState
	claims    map[types.NamespacedName]*resourcev1.ResourceClaim // nil unless they are followed
	volumes   volumeStore
	addresses *addresses
}

type podState struct {
	object  *corev1.Pod   // guarded by the store
	logs    records       // guarded by the store
	changed chan struct{} // guarded by the store; nil unless a reader of logs waits

	failed map[run]bool // guarded by the store: what was decided about FailFirst

	// mounted are the volumes that are mounted, nil if they are still waited for. Guarded by the
	// store.
	mounted []corev1.UniqueVolumeName

	memo      memo
	reported  string   // the problems of its annotations that were logged already
	waits     string   // the claim that it waits for, as an Event named it last
	unmounted string   // the volumes that it waits for, as an Event named them last
	stage     *playing // the Stage that plays it
}

type nodeState struct {
	object *corev1.Node // guarded by the store

	// announcing is set while the status is written that says which volumes are in use, and
	// until a write has succeeded. Guarded by the store.
	announcing bool

	heartbeat heartbeat
	reported  string
	stage     *playing
	ready     bool
}

func newStore() *store {
	return &store{
		nodes:     map[string]*nodeState{},
		pods:      map[types.NamespacedName]*podState{},
		volumes:   newVolumeStore(),
		addresses: newAddresses(),
	}
}

// versioned is what newer needs to know of an object.
type versioned interface {
	GetUID() types.UID
	GetResourceVersion() string
}

// newer reports whether a is a later version than b. What a watch brings can be
// older than what the answer to a write has brought before.
func newer(a, b versioned) bool {
	return object.Version(a.GetResourceVersion()).Compare(object.Version(b.GetResourceVersion())) > 0
}

// putPod takes a Pod from a watch or a list, and reports whether it is news.
func (s *store) putPod(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := podKey(pod).name
	state, ok := s.pods[name]
	switch {
	case !ok:
	case !newer(pod, state.object):
		return false
	case state.object.UID == pod.UID:
		s.set(state, pod)
		return true
	default: // another Pod took the name
		s.addresses.release(state.object.UID)
		s.volumes.dropPod(name, state)
		state.notify()
	}
	state = &podState{memo: memo{}}
	s.pods[name] = state
	s.set(state, pod)
	s.volumes.addPod(name, state)
	return true
}

// set takes over a newer version of a Pod.
func (s *store) set(state *podState, pod *corev1.Pod) {
	state.object = pod
	state.logs.observe(pod)
	s.account(pod)
	state.notify()
}

// notify wakes the readers of the Pod's logs.
func (p *podState) notify() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// updatePod takes the answer to a write. It does nothing if the Pod is gone from
// the store: its deletion was seen before the answer.
func (s *store) updatePod(state *podState, pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[podKey(pod).name] == state && newer(pod, state.object) {
		s.set(state, pod)
	}
}

// account keeps the addresses in step with a Pod.
func (s *store) account(pod *corev1.Pod) {
	if ended(pod.Status.Phase) {
		s.addresses.release(pod.UID)
		return
	}
	if node, ok := s.nodes[pod.Spec.NodeName]; ok && pod.Status.PodIP != "" && !pod.Spec.HostNetwork {
		s.addresses.keep(pod.UID, pod.Status.PodIP, node.object)
	}
}

func (s *store) dropPod(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := podKey(pod).name
	if state, ok := s.pods[name]; ok && !newer(state.object, pod) {
		s.forget(name, state)
	}
}

// replacePods takes a whole list and returns the keys of the Pods in it. Pods that
// are not in the list are gone.
func (s *store) replacePods(pods []*corev1.Pod) []key {
	listed := make(map[types.NamespacedName]bool, len(pods))
	keys := make([]key, 0, len(pods))
	for _, pod := range pods {
		k := podKey(pod)
		listed[k.name] = true
		keys = append(keys, k)
		s.putPod(pod)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, state := range s.pods {
		if !listed[name] {
			s.forget(name, state)
		}
	}
	return keys
}

func (s *store) forget(name types.NamespacedName, state *podState) {
	s.addresses.release(state.object.UID)
	s.volumes.dropPod(name, state)
	delete(s.pods, name)
	state.notify()
}

// pod returns a Pod with its Node, and false unless the Node is one that plays:
// simulated, and not silent.
func (s *store) pod(name types.NamespacedName) (state *podState, pod *corev1.Pod, node *corev1.Node, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok = s.pods[name]
	if !ok {
		return nil, nil, nil, false
	}
	on, ok := s.nodes[state.object.Spec.NodeName]
	if !ok {
		return nil, nil, nil, false
	}
	if quiet, _ := silent(on.object); quiet {
		return nil, nil, nil, false
	}
	return state, state.object, on.object, true
}

// network returns the addresses of a living Pod, which are its own from then on.
func (s *store) network(pod *corev1.Pod, node *corev1.Node) (network, error) {
	where := network{hostIPs: hostIPs(node)}
	if pod.Spec.HostNetwork {
		where.podIPs = where.hostIPs
		return where, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.pods[podKey(pod).name]
	if !ok || state.object.UID != pod.UID || ended(state.object.Status.Phase) {
		return where, nil // nothing would release them
	}
	var err error
	where.podIPs, err = s.addresses.take(pod.UID, node)
	return where, err
}

// putNode stores a simulated Node, and reports whether its Pods have to be handled: it is
// new, no longer silent, or has addresses for them now.
func (s *store) putNode(node *corev1.Node) (wakesPods bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.nodes[node.Name]
	if ok && !newer(node, state.object) {
		return false
	}
	if ok && state.object.UID == node.UID {
		was, _ := silent(state.object)
		is, _ := silent(node)
		gotRanges := len(state.object.Spec.PodCIDRs) == 0 && len(node.Spec.PodCIDRs) > 0
		state.object = node
		if is && !was {
			s.notifyPodsOn(node.Name)
		}
		return was && !is || gotRanges && !is
	}
	s.nodes[node.Name] = &nodeState{object: node}
	for _, pod := range s.pods {
		if pod.object.Spec.NodeName == node.Name {
			s.account(pod.object)
		}
	}
	return true
}

func (s *store) updateNode(state *nodeState, node *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[node.Name] == state && newer(node, state.object) {
		state.object = node
	}
}

func (s *store) dropNode(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, name)
	s.notifyPodsOn(name)
}

// notifyPodsOn wakes the readers of logs of a Node that answers no more.
func (s *store) notifyPodsOn(node string) {
	for _, state := range s.pods {
		if state.object.Spec.NodeName == node {
			state.notify()
		}
	}
}

// keepNodes drops all Nodes but those listed.
func (s *store) keepNodes(listed map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.nodes {
		if !listed[name] {
			delete(s.nodes, name)
			s.notifyPodsOn(name)
		}
	}
}

func (s *store) node(name string) (state *nodeState, node *corev1.Node, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok = s.nodes[name]
	if !ok {
		return nil, nil, false
	}
	return state, state.object, true
}

func (s *store) podsOn(node string) []key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []key
	for _, state := range s.pods {
		if state.object.Spec.NodeName == node {
			keys = append(keys, podKey(state.object))
		}
	}
	return keys
}
