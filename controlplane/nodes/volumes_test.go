// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const dataUnique corev1.UniqueVolumeName = "kubernetes.io/csi/sim.setpoint.io^handle"

// volumeScene is a store with one Node and a Pod that uses the claim "data".
type volumeScene struct {
	t       *testing.T
	store   *store
	version int
}

func newVolumeScene(t *testing.T) *volumeScene {
	c := &volumeScene{t: t, store: newStore()}
	c.node(nil, nil)
	c.pod("web", corev1.PodPending)
	return c
}

func (c *volumeScene) next() string {
	c.version++
	return strconv.Itoa(c.version)
}

// node puts the Node with what its status says of volumes.
func (c *volumeScene) node(inUse []corev1.UniqueVolumeName, attached []corev1.AttachedVolume) {
	c.store.putNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-0", UID: "node", ResourceVersion: c.next()},
		Status:     corev1.NodeStatus{VolumesInUse: inUse, VolumesAttached: attached},
	})
}

func (c *volumeScene) pod(name string, phase corev1.PodPhase) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: c.next()}}
	pod.Spec.NodeName, pod.Status.Phase = "node-0", phase
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
	}
	(&stages{}).trim(pod)
	c.store.putPod(pod)
	return pod
}

func (c *volumeScene) state(name string) *podState {
	return c.store.pods[types.NamespacedName{Namespace: "ns", Name: name}]
}

func (c *volumeScene) claim(phase corev1.PersistentVolumeClaimPhase) []key {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "claim"}}
	claim.Spec.VolumeName, claim.Status.Phase = "pv", phase
	return c.store.putVolumeClaim(claim)
}

func (c *volumeScene) pv(claim types.UID) []key {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: claim}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "sim.setpoint.io", VolumeHandle: "handle"}
	return c.store.putVolume(pv)
}

// waits holds what a Pod waits for, in the words of a kubelet.
func (c *volumeScene) waits(want string) {
	c.t.Helper()
	m := c.store.mount(c.state("web"))
	if got := m.String(); got != want {
		c.t.Errorf("the Pod waits because %q, want %q", got, want)
	}
}

// inUse holds what the Node has in use.
func (c *volumeScene) inUse(want ...corev1.UniqueVolumeName) {
	c.t.Helper()
	if got := c.store.volumes.inUse("node-0"); !slices.Equal(got, want) {
		c.t.Errorf("in use are %v, want %v", got, want)
	}
}

func TestAPodWaitsForItsVolumesInTheOrderOfAKubelet(t *testing.T) {
	c := newVolumeScene(t)
	const unprocessed = "unmounted volumes=[disk], unattached volumes=[], failed to process volumes=[disk]: error processing PVC ns/data: "
	c.waits(unprocessed + `failed to fetch PVC from API server: persistentvolumeclaims "data" not found`)
	if woken := c.claim(corev1.ClaimPending); len(woken) != 1 {
		t.Errorf("the claim wakes %v", woken)
	}
	c.waits(unprocessed + "PVC is not bound")
	c.claim(corev1.ClaimBound)
	c.waits(unprocessed + `failed to fetch PV pv from API server: persistentvolumes "pv" not found`)
	c.pv("other")
	c.waits(unprocessed + "found PV object pv but its pv.Spec.ClaimRef.UID other does not point to claim.UID claim")
	c.inUse()
	if woken := c.pv("claim"); len(woken) != 1 {
		t.Errorf("the volume wakes %v", woken)
	}
	c.inUse(dataUnique)
	c.waits("unmounted volumes=[disk], unattached volumes=[disk], failed to process volumes=[]: context deadline exceeded")
	attached := []corev1.AttachedVolume{{Name: dataUnique}}
	c.node(nil, attached)
	c.waits("unmounted volumes=[disk], unattached volumes=[], failed to process volumes=[]: context deadline exceeded") // it is not said to be in use
	c.node([]corev1.UniqueVolumeName{dataUnique}, nil)
	c.waits("unmounted volumes=[disk], unattached volumes=[disk], failed to process volumes=[]: context deadline exceeded")
	c.node([]corev1.UniqueVolumeName{dataUnique}, attached)
	c.waits("")
	c.node(nil, nil) // a mounted volume stays mounted
	c.waits("")
	c.inUse(dataUnique)
}

func TestNothingIsMountedWhileTheVolumesInUseAreWritten(t *testing.T) {
	c := newVolumeScene(t)
	c.claim(corev1.ClaimBound)
	c.pv("claim")
	node := c.store.nodes["node-0"]
	inUse, changed := c.store.announce(node)
	if !changed || !slices.Equal(inUse, []corev1.UniqueVolumeName{dataUnique}) {
		t.Fatalf("announced are %v, %v", inUse, changed)
	}
	// The status that an earlier write has left names the volume, but the write that is in
	// progress may have another list.
	c.node(inUse, []corev1.AttachedVolume{{Name: dataUnique}})
	const waits = "unmounted volumes=[disk], unattached volumes=[], failed to process volumes=[]: context deadline exceeded"
	c.waits(waits)
	if _, changed := c.store.announce(node); !changed {
		t.Error("a write whose answer was lost is not repeated")
	}
	c.waits(waits)
	c.store.announced(node, node.object)
	c.waits("")
	if _, changed := c.store.announce(node); changed {
		t.Error("it is announced again")
	}
}

// The Node can go between the moment that a Pod is read and the one that its volumes are mounted.
func TestNothingIsMountedAtANodeThatIsGone(t *testing.T) {
	c := newVolumeScene(t)
	c.claim(corev1.ClaimBound)
	c.pv("claim")
	c.store.dropNode("node-0")
	c.waits("unmounted volumes=[disk], unattached volumes=[disk], failed to process volumes=[]: context deadline exceeded")
}

func TestAVolumeIsInUseUntilThePodsHaveEnded(t *testing.T) {
	c := newVolumeScene(t)
	c.claim(corev1.ClaimBound)
	c.pv("claim")
	second := c.pod("second", corev1.PodRunning)
	c.pod("web", corev1.PodRunning)
	c.inUse(dataUnique)
	c.pod("web", corev1.PodSucceeded)
	c.inUse(dataUnique)
	gone := second.DeepCopy()
	gone.ResourceVersion = c.next()
	c.store.dropPod(gone)
	c.inUse()
}

func TestAMountedVolumeIsInUseAlsoWithoutItsClaim(t *testing.T) {
	c := newVolumeScene(t)
	c.claim(corev1.ClaimBound)
	c.pv("claim")
	c.node([]corev1.UniqueVolumeName{dataUnique}, []corev1.AttachedVolume{{Name: dataUnique}})
	c.waits("")
	c.store.replaceVolumeClaims(nil)
	c.store.replaceVolumes(nil)
	c.inUse(dataUnique)
}

func TestAVolumeOfADriverThatDoesNotAttachIsMountedAtOnce(t *testing.T) {
	c := newVolumeScene(t)
	c.claim(corev1.ClaimBound)
	c.pv("claim")
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "sim.setpoint.io"}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}}
	c.store.replaceDrivers([]*storagev1.CSIDriver{driver})
	c.inUse()
	c.waits("")
	c.store.putDriver(driver, true)
	c.inUse(dataUnique) // of the next look; what is mounted stays
}

func TestAPodWithoutVolumesOfItsOwnIsNotKept(t *testing.T) {
	c := newVolumeScene(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "plain", ResourceVersion: c.next()}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
	pod.Spec.NodeName = "node-0"
	(&stages{}).trim(pod)
	c.store.putPod(pod)
	if pod.Spec.Volumes != nil || len(c.store.volumes.podsOn["node-0"]) != 1 {
		t.Errorf("kept are %v and %v", pod.Spec.Volumes, c.store.volumes.podsOn)
	}
}
