// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Fields that decide whether an event matters.
// Source: k8s.io/api/core/v1/generated.proto.
var (
	podPhase      = wire.Path{Names: "status.phase", Numbers: [4]int32{3, 1}}
	claimPhase    = wire.Path{Names: "status.phase", Numbers: [4]int32{3, 1}}
	claimVolume   = wire.Path{Names: "spec.volumeName", Numbers: [4]int32{2, 3}}
	volumeClaimed = wire.Path{Names: "spec.claimRef.uid", Numbers: [4]int32{2, 4, 4}}
)

// changesUse chooses the events after which a Pod uses its volumes otherwise: it is new, it is
// gone, it has ended, or its spec has changed, which may have brought an ephemeral container.
func changesUse(e cache.Event[*corev1.Pod]) bool {
	if appearsOrGoes(e) {
		return true
	}
	return e.Old.Meta().Generation != e.New.Meta().Generation || ended(e.Old) != ended(e.New)
}

// ended reports whether a Pod has ended.
func ended(pod cache.Item[*corev1.Pod]) bool {
	phase, _ := pod.Text(podPhase) // a Pod that cannot be read has not ended
	return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
}

// changesVolume chooses the events after which a claim has a volume, or has it no more.
func changesVolume(e cache.Event[*corev1.PersistentVolumeClaim]) bool {
	was, is := boundTo(e.Old), boundTo(e.New)
	return was != is || e.Kind == cache.Replaced && is != ""
}

// boundTo returns the name of the volume that a claim is bound to, or "". It is "" for an item that
// does not exist.
func boundTo(claim cache.Item[*corev1.PersistentVolumeClaim]) string {
	phase, _ := claim.Text(claimPhase)
	volume, _ := claim.Text(claimVolume)
	if phase != string(corev1.ClaimBound) {
		return ""
	}
	return volume
}

// changesClaim chooses the events after which a volume is bound to another claim.
func changesClaim(e cache.Event[*corev1.PersistentVolume]) bool {
	if appearsOrGoes(e) {
		return true
	}
	was, _ := e.Old.Text(volumeClaimed)
	now, _ := e.New.Text(volumeClaimed)
	return was != now
}

// changesMount chooses the events after which a CSI driver may mount otherwise.
func changesMount(e cache.Event[*storagev1.CSIDriver]) bool {
	return appearsOrGoes(e) || mounts(e.Old) != mounts(e.New)
}

// mounts reports whether a CSI driver mounts volumes with labels. One that cannot be decoded does
// not.
func mounts(item cache.Item[*storagev1.CSIDriver]) bool {
	driver, err := item.Object()
	return err == nil && mountsWithLabels(driver)
}

// mountsWithLabels reports whether a CSI driver mounts volumes with labels.
func mountsWithLabels(driver *storagev1.CSIDriver) bool {
	return driver.Spec.SELinuxMount != nil && *driver.Spec.SELinuxMount
}

// appearsOrGoes reports whether an object is new, is gone, or is another one of the same name.
func appearsOrGoes[T object.Object](e cache.Event[T]) bool {
	return !e.Old.Exists() || !e.New.Exists() || e.Kind == cache.Replaced
}

// ofClaim is a mapping from a claim to the Pods that name it.
func (r *reconciler) ofClaim(claim cache.Item[*corev1.PersistentVolumeClaim], add func(object.Key)) {
	r.naming(claim.Key(), add)
}

// ofVolume is a mapping from a volume to the Pods that name its claim.
func (r *reconciler) ofVolume(item cache.Item[*corev1.PersistentVolume], add func(object.Key)) {
	volume, err := item.Object()
	if err != nil || volume.Spec.ClaimRef == nil {
		return // the run that reads the volume says that it cannot be decoded
	}
	r.naming(object.Key{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}, add)
}

// naming adds the Pods that name a claim.
func (r *reconciler) naming(claim object.Key, add func(object.Key)) {
	for key := range r.byClaim.Find(claim.String()) {
		add(key)
	}
}
