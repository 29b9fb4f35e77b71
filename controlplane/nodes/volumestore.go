// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/internal/volumes"
)

// claimFinalizer keeps a claim that Pods use. Without it, a claim that is being deleted can go at
// any moment.
// Source: k8s.io/kubernetes/pkg/volume/util, PVCProtectionFinalizer.
const claimFinalizer = "kubernetes.io/pvc-protection"

// volumeStore is what is known of volumes. The store guards it. Pods without volumes of their own
// are not in it.
type volumeStore struct {
	claims    map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes   map[string]volume
	unneeding map[string]bool // drivers whose volumes need not be attached

	podsOn map[string]map[types.NamespacedName]*podState               // by node
	podsOf map[types.NamespacedName]map[types.NamespacedName]*podState // by claim
}

// volume is a PersistentVolume.
type volume struct {
	claim  types.NamespacedName // that it is bound to, or is to be
	uid    types.UID            // of that claim
	unique corev1.UniqueVolumeName
	driver string
}

func newVolumeStore() volumeStore {
	return volumeStore{
		claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, volumes: map[string]volume{}, unneeding: map[string]bool{},
		podsOn: map[string]map[types.NamespacedName]*podState{}, podsOf: map[types.NamespacedName]map[types.NamespacedName]*podState{},
	}
}

// volumesOf returns the volumes of a Pod that its kubelet waits for: those of claims, and those that
// have to be attached. There are no others in a Pod that was trimmed.
func volumesOf(pod *corev1.Pod) (of []*corev1.Volume) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if _, inline := attachable.OfInline(v, pod.Namespace); inline || volumes.ClaimName(pod, v) != "" {
			of = append(of, v)
		}
	}
	return of
}

// trimVolumes returns copies of the volumes that the kubelet waits for.
func trimVolumes(pod *corev1.Pod) (out []corev1.Volume) {
	for _, v := range volumesOf(pod) {
		kept := *v
		if v.Ephemeral != nil {
			kept.Ephemeral = &corev1.EphemeralVolumeSource{} // the template is never read
		}
		out = append(out, kept)
	}
	return out
}

// claimsOf returns the claims of a Pod.
func claimsOf(pod *corev1.Pod) (of []types.NamespacedName) {
	for i := range pod.Spec.Volumes {
		if name := volumes.ClaimName(pod, &pod.Spec.Volumes[i]); name != "" {
			of = append(of, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		}
	}
	return of
}

// addPod makes a Pod that has volumes known.
func (v *volumeStore) addPod(name types.NamespacedName, state *podState) {
	if len(state.object.Spec.Volumes) == 0 || len(volumesOf(state.object)) == 0 {
		return
	}
	enter(v.podsOn, state.object.Spec.NodeName, name, state)
	for _, claim := range claimsOf(state.object) {
		enter(v.podsOf, claim, name, state)
	}
}

// dropPod forgets a Pod.
func (v *volumeStore) dropPod(name types.NamespacedName, state *podState) {
	if len(state.object.Spec.Volumes) == 0 {
		return
	}
	leave(v.podsOn, state.object.Spec.NodeName, name)
	for _, claim := range claimsOf(state.object) {
		leave(v.podsOf, claim, name)
	}
}

func enter[K comparable](index map[K]map[types.NamespacedName]*podState, at K, name types.NamespacedName, state *podState) {
	if index[at] == nil {
		index[at] = map[types.NamespacedName]*podState{}
	}
	index[at][name] = state
}

func leave[K comparable](index map[K]map[types.NamespacedName]*podState, at K, name types.NamespacedName) {
	delete(index[at], name)
	if len(index[at]) == 0 {
		delete(index, at)
	}
}

// resolve returns the unique name of a volume of a Pod, "" if it need not be attached, or what is
// wrong with it, in the kubelet's words.
// Source: k8s.io/kubernetes/pkg/kubelet/volumemanager/populator.
func (v *volumeStore) resolve(pod *corev1.Pod, of *corev1.Volume) (unique corev1.UniqueVolumeName, problem string) {
	if inline, ok := attachable.OfInline(of, pod.Namespace); ok {
		return v.needing(inline.Unique, inline.Driver), ""
	}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: volumes.ClaimName(pod, of)}
	wrong := func(format string, args ...any) (corev1.UniqueVolumeName, string) {
		return "", fmt.Sprintf("error processing PVC %s: %s", name, fmt.Sprintf(format, args...))
	}
	claim := v.claims[name]
	switch {
	case claim == nil:
		return wrong("failed to fetch PVC from API server: persistentvolumeclaims %q not found", name.Name)
	case !volumes.Uses(pod, of, claim):
		return "", fmt.Sprintf("PVC %s was not created for pod %s/%s (pod is not owner)", name, pod.Namespace, pod.Name)
	case claim.DeletionTimestamp != nil && !slices.Contains(claim.Finalizers, claimFinalizer):
		return wrong("PVC is being deleted")
	case claim.Status.Phase != corev1.ClaimBound:
		return wrong("PVC is not bound")
	}
	pv, ok := v.volumes[claim.Spec.VolumeName]
	switch {
	case !ok:
		return wrong("failed to fetch PV %s from API server: persistentvolumes %q not found", claim.Spec.VolumeName, claim.Spec.VolumeName)
	case pv.uid != claim.UID:
		return wrong("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", claim.Spec.VolumeName, pv.uid, claim.UID)
	}
	return v.needing(pv.unique, pv.driver), ""
}

// needing returns the unique name of a volume, "" if its driver does not want it attached.
func (v *volumeStore) needing(unique corev1.UniqueVolumeName, driver string) corev1.UniqueVolumeName {
	if v.unneeding[driver] {
		return ""
	}
	return unique
}

// inUse returns the volumes that the Pods of a node use, in order: those that are mounted, and
// those that are going to be. A Pod whose containers have ended uses none.
func (v *volumeStore) inUse(node string) []corev1.UniqueVolumeName {
	all := map[corev1.UniqueVolumeName]bool{}
	for _, state := range v.podsOn[node] {
		if ended(state.object.Status.Phase) {
			continue
		}
		for _, unique := range state.mounted {
			all[unique] = true
		}
		for _, of := range volumesOf(state.object) {
			if unique, _ := v.resolve(state.object, of); unique != "" {
				all[unique] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// mount mounts the volumes of a Pod if all of them are attached, and reports how far they are.
func (s *store) mount(state *podState) (m mounting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state.mounted != nil {
		return mounting{}
	}
	at := s.nodes[state.object.Spec.NodeName]
	if at == nil { // the Node has gone since the Pod was read: nothing is attached there
		at = &nodeState{object: &corev1.Node{}}
	}
	mounted := []corev1.UniqueVolumeName{}
	for _, of := range volumesOf(state.object) {
		unique, problem := s.volumes.resolve(state.object, of)
		m.add(of.Name, unique, problem, at)
		if unique != "" {
			mounted = append(mounted, unique)
		}
	}
	if len(m.unmounted) == 0 {
		state.mounted = mounted
	}
	return m
}

// announce returns the volumes that are in use at a node, and whether the status of the Node has to
// say so. If it has, no volume is mounted there until announced is called: one that is not in the
// list could be detached.
func (s *store) announce(state *nodeState) (inUse []corev1.UniqueVolumeName, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inUse = s.volumes.inUse(state.object.Name)
	if slices.Equal(inUse, state.object.Status.VolumesInUse) && !state.announcing {
		return nil, false
	}
	state.announcing = true
	return inUse, true
}

// announced takes the Node that the server has answered with.
func (s *store) announced(state *nodeState, node *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state.announcing = false
	if s.nodes[node.Name] == state && newer(node, state.object) {
		state.object = node
	}
}

// podsToMount returns the Pods of a node that wait for volumes.
func (s *store) podsToMount(node string) (keys []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return waitingOf(s.volumes.podsOn[node])
}

func waitingOf(pods map[types.NamespacedName]*podState) (keys []key) {
	for name, state := range pods {
		if state.mounted == nil && state.object.Status.Phase == corev1.PodPending {
			keys = append(keys, key{name: name})
		}
	}
	return keys
}

// putVolumeClaim takes a claim, and returns the Pods that wait for it.
func (s *store) putVolumeClaim(claim *corev1.PersistentVolumeClaim) []key {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	s.volumes.claims[name] = trimClaim(claim)
	return waitingOf(s.volumes.podsOf[name])
}

func (s *store) dropVolumeClaim(claim *corev1.PersistentVolumeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes.claims, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
}

// replaceVolumeClaims takes a whole list, at once: the volumes of a claim that is missing for a
// moment would be in use no longer.
func (s *store) replaceVolumeClaims(claims []*corev1.PersistentVolumeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.volumes.claims)
	for _, claim := range claims {
		s.volumes.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = trimClaim(claim)
	}
}

// trimClaim returns what is read of a claim.
func trimClaim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	out := &corev1.PersistentVolumeClaim{}
	out.Namespace, out.Name, out.UID = claim.Namespace, claim.Name, claim.UID
	out.OwnerReferences, out.Finalizers, out.DeletionTimestamp = claim.OwnerReferences, claim.Finalizers, claim.DeletionTimestamp
	out.Spec.VolumeName, out.Status.Phase = claim.Spec.VolumeName, claim.Status.Phase
	return out
}

// putVolume takes a PersistentVolume, and returns the Pods that wait for it.
func (s *store) putVolume(pv *corev1.PersistentVolume) []key {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := volumeFor(pv)
	s.volumes.volumes[pv.Name] = of
	return waitingOf(s.volumes.podsOf[of.claim])
}

func (s *store) dropVolume(pv *corev1.PersistentVolume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes.volumes, pv.Name)
}

func (s *store) replaceVolumes(pvs []*corev1.PersistentVolume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.volumes.volumes)
	for _, pv := range pvs {
		s.volumes.volumes[pv.Name] = volumeFor(pv)
	}
}

// volumeFor returns what is read of a PersistentVolume.
func volumeFor(pv *corev1.PersistentVolume) volume {
	var out volume
	if ref := pv.Spec.ClaimRef; ref != nil {
		out.claim, out.uid = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID
	}
	if of, ok := attachable.OfPV(pv); ok {
		out.unique, out.driver = of.Unique, of.Driver
	}
	return out
}

// replaceDrivers takes a whole list.
func (s *store) replaceDrivers(drivers []*storagev1.CSIDriver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.volumes.unneeding)
	for _, driver := range drivers {
		s.volumes.setDriver(driver)
	}
}

// putDriver takes a CSIDriver.
func (s *store) putDriver(driver *storagev1.CSIDriver, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone {
		delete(s.volumes.unneeding, driver.Name) // without the object, they are attached
		return
	}
	s.volumes.setDriver(driver)
}

// setDriver takes over whether the volumes of a driver have to be attached.
func (v *volumeStore) setDriver(driver *storagev1.CSIDriver) {
	if required := driver.Spec.AttachRequired; required == nil || *required {
		delete(v.unneeding, driver.Name)
	} else {
		v.unneeding[driver.Name] = true
	}
}

// waitingPods returns all Pods that wait for volumes.
func (s *store) waitingPods() (keys []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pods := range s.volumes.podsOn {
		keys = append(keys, waitingOf(pods)...)
	}
	return keys
}
