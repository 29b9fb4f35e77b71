// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// enqueuedBy is how one loop of the controller adds keys to the other one.
func enqueuedBy(loop string) workqueue.Add {
	return workqueue.Add{Cause: workqueue.Cause{Source: loop, Verb: workqueue.Enqueued}}
}

// changed returns a predicate for updates in which something differs. Additions and deletions
// always matter, and so does an object that cannot be decoded.
func changed[T object.Object](same func(before, after T) bool) func(cache.Event[T]) bool {
	return func(e cache.Event[T]) bool {
		if e.Kind != cache.Updated {
			return true
		}
		before, err := e.Old.Object()
		if err != nil {
			return true
		}
		after, err := e.New.Object()
		return err != nil || !same(before, after)
	}
}

// podMatters chooses the changes of Pods by which a volume is needed or not.
func podMatters(e cache.Event[*corev1.Pod]) bool {
	// The volumes of a Pod do not change.
	return (e.Kind != cache.Updated || mayNeed(e.New)) && podChanged(e)
}

var podChanged = changed(func(before, after *corev1.Pod) bool {
	return before.Spec.NodeName == after.Spec.NodeName && volumes.Stopped(before) == volumes.Stopped(after)
})

var claimMatters = changed(func(before, after *corev1.PersistentVolumeClaim) bool {
	return before.Spec.VolumeName == after.Spec.VolumeName && before.Status.Phase == after.Status.Phase
})

var pvMatters = changed(func(before, after *corev1.PersistentVolume) bool {
	a, b := before.Spec.ClaimRef, after.Spec.ClaimRef
	return (a == nil) == (b == nil) && (a == nil || a.UID == b.UID)
})

// nodeMatters chooses the changes of Nodes that matter for all volumes there.
var nodeMatters = changed(func(before, after *corev1.Node) bool {
	a, b := stateOf(before, ""), stateOf(after, "")
	return a == b && before.UID == after.UID
})

var inUseMatters = changed(func(before, after *corev1.Node) bool {
	return slices.Equal(before.Status.VolumesInUse, after.Status.VolumesInUse)
})

var attachedMatters = changed(func(before, after *corev1.Node) bool {
	return before.UID == after.UID && slices.Equal(before.Status.VolumesAttached, after.Status.VolumesAttached)
})

var attachmentMatters = changed(func(before, after *storagev1.VolumeAttachment) bool {
	return before.UID == after.UID && before.Status.Attached == after.Status.Attached && (before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil)
})

// volumesOfPod adds the volumes of a Pod that is on a node.
func (r *reconciler) volumesOfPod(item cache.Item[*corev1.Pod], add func(corev1.UniqueVolumeName)) {
	if !mayNeed(item) {
		return
	}
	pod, err := item.Object()
	if err != nil || pod.Spec.NodeName == "" {
		return
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name := volumes.ClaimName(pod, v)
		if name == "" {
			if s, ok := ofInline(v, pod.Namespace); ok {
				add(s.unique)
			}
			continue
		}
		if claim, err := r.claims.Get(object.Key{Namespace: pod.Namespace, Name: name}); err == nil {
			r.addVolumeOf(claim, add)
		}
	}
}

func (r *reconciler) volumesOfClaim(item cache.Item[*corev1.PersistentVolumeClaim], add func(corev1.UniqueVolumeName)) {
	if claim, err := item.Object(); err == nil {
		r.addVolumeOf(claim, add)
	}
}

// addVolumeOf adds the volume of a claim. If its PersistentVolume is gone, its attachments lead to the
// volume: it stays at a node while a Pod there has the claim.
func (r *reconciler) addVolumeOf(claim *corev1.PersistentVolumeClaim, add func(corev1.UniqueVolumeName)) {
	name := claim.Spec.VolumeName
	if name == "" {
		return
	}
	if r.addPV(name, add) {
		return
	}
	for _, va := range r.attachmentsOf.Find(name) {
		r.volumesOfAttachment(va, add)
	}
}

// addPV adds the volume of a PersistentVolume, and reports whether there is one of that name.
func (r *reconciler) addPV(name string, add func(corev1.UniqueVolumeName)) (exists bool) {
	pv, err := r.pvs.Get(object.Key{Name: name})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	if s, ok := ofVolume(pv); ok {
		add(s.unique)
	}
	return true
}

func (r *reconciler) volumesOfPV(item cache.Item[*corev1.PersistentVolume], add func(corev1.UniqueVolumeName)) {
	pv, err := item.Object()
	if err != nil {
		return
	}
	if s, ok := ofVolume(pv); ok {
		add(s.unique)
	}
}

func (r *reconciler) volumesOfAttachment(item cache.Item[*storagev1.VolumeAttachment], add func(corev1.UniqueVolumeName)) {
	if va, err := item.Object(); err == nil {
		if unique, ok := r.volumeOf(va); ok {
			add(unique)
		}
	}
}

// volumesAtNode adds all volumes that are at a node, or are to be.
func (r *reconciler) volumesAtNode(item cache.Item[*corev1.Node], add func(corev1.UniqueVolumeName)) {
	node, err := item.Object()
	if err != nil {
		return
	}
	for i := range node.Status.VolumesAttached {
		add(node.Status.VolumesAttached[i].Name)
	}
	for _, va := range r.attachmentsOn.Find(node.Name) {
		r.volumesOfAttachment(va, add)
	}
	for _, pod := range r.podsOnNode.Find(node.Name) {
		r.volumesOfPod(pod, add)
	}
	r.spots.at(node.Name, add)
}

// volumesThatLeave adds the volumes that wait for a kubelet to unmount them. It notes of all volumes whether the kubelet has
// them in use: that counts if the Node goes before the next run for the volume.
func (r *reconciler) volumesThatLeave(item cache.Item[*corev1.Node], add func(corev1.UniqueVolumeName)) {
	node, err := item.Object()
	if err != nil {
		return
	}
	r.spots.at(node.Name, func(volume corev1.UniqueVolumeName) {
		inUse, leaves := slices.Contains(node.Status.VolumesInUse, volume), false
		r.world.Update(spot{volume, node.Name}, func(m *memory) {
			m.notInUse, leaves = !inUse, !m.unwanted.IsZero()
		})
		if leaves {
			add(volume)
		}
	})
}

// volumesOfDriver adds all volumes of a driver: whether it attaches volumes may have changed.
func (r *reconciler) volumesOfDriver(item cache.Item[*storagev1.CSIDriver], add func(corev1.UniqueVolumeName)) {
	name := item.Key().Name
	for unique := range r.pvsOfVolume.Values(r.pvs.Snapshot()) {
		if driver, _, ok := attachable.SplitCSI(corev1.UniqueVolumeName(unique)); ok && driver == name {
			add(corev1.UniqueVolumeName(unique))
		}
	}
}

// everyVolume adds each volume that is attached, once in each period: an attachment that no event
// leads to is noticed.
func (r *reconciler) everyVolume(ctx context.Context, add func(corev1.UniqueVolumeName)) {
	ticker := time.NewTicker(r.options.SyncPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, va := range r.attachments.All() {
			r.volumesOfAttachment(va, add)
		}
		for unique := range r.nodesOfVolume.Values(r.nodes.Snapshot()) {
			add(corev1.UniqueVolumeName(unique))
		}
	}
}

func nodeItself(item cache.Item[*corev1.Node], add func(string)) { add(item.Key().Name) }

func nodeOfAttachment(item cache.Item[*storagev1.VolumeAttachment], add func(string)) {
	if va, err := item.Object(); err == nil {
		add(va.Spec.NodeName)
	}
}
