// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// viewOf collects what is decided from about a volume.
func (r *reconciler) viewOf(volume corev1.UniqueVolumeName) (view, error) {
	s := &survey{r: r, volume: volume, places: map[string]*place{}}
	if err := s.pvs(); err != nil {
		return view{}, err
	}
	if err := s.inline(); err != nil {
		return view{}, err
	}
	for node := range r.nodesOfVolume.Find(string(volume)) {
		s.place(node.Name)
	}
	r.spots.of(volume, func(node string) { s.place(node) })
	v := view{source: s.source, now: time.Now(), unmountWait: r.options.UnmountWait, forceTimeout: !r.options.DisableForceDetachOnTimeout}
	for _, node := range slices.Sorted(maps.Keys(s.places)) {
		at := s.places[node]
		if err := s.complete(at); err != nil {
			return view{}, err
		}
		v.places = append(v.places, *at)
	}
	v.source = s.source
	return v, nil
}

// survey is a view in the making.
type survey struct {
	r      *reconciler
	volume corev1.UniqueVolumeName
	source source
	places map[string]*place
}

func (s *survey) place(node string) *place {
	if s.places[node] == nil {
		s.places[node] = &place{node: node}
	}
	return s.places[node]
}

// pvs adds the PersistentVolumes that stand for the volume, usually one, with their attachments and
// the Pods that use their claims.
func (s *survey) pvs() error {
	s.source = source{unique: s.volume, name: string(s.volume)}
	s.source.driver, _, _ = attachable.SplitCSI(s.volume)
	var all []*corev1.PersistentVolume
	for _, item := range s.r.pvsOfVolume.Find(string(s.volume)) {
		pv, err := item.Object()
		if err != nil {
			return err
		}
		all = append(all, pv)
	}
	slices.SortFunc(all, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	attachable, err := s.r.attaches(s.source.driver)
	if err != nil {
		return err
	}
	for i, pv := range all {
		for _, item := range s.r.attachmentsOf.Find(pv.Name) {
			if err := s.attachment(item.Object()); err != nil {
				return err
			}
		}
		used := false
		if attachable {
			if used, err = s.pods(pv); err != nil {
				return err
			}
		}
		// An attachment names the PersistentVolume that Pods use.
		if of, ok := ofVolume(pv); ok {
			of.exclusive = of.exclusive || s.source.exclusive
			if i == 0 || used {
				s.source = of
			}
			s.source.exclusive = of.exclusive
		}
	}
	return nil
}

// attaches reports whether the volumes of a driver are attached at all. A driver without a
// CSIDriver object attaches them.
// Source: k8s.io/kubernetes/pkg/volume/csi, skipAttach.
func (r *reconciler) attaches(driver string) (bool, error) {
	if driver == "" {
		return true, nil
	}
	d, err := r.drivers.Get(object.Key{Name: driver})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && (d.Spec.AttachRequired == nil || *d.Spec.AttachRequired), err
}

// attachment adds the place of an attachment.
func (s *survey) attachment(va *storagev1.VolumeAttachment, err error) error {
	if err == nil && attachmentOf(s.volume, va.Spec.NodeName) == va.Name {
		s.place(va.Spec.NodeName)
	}
	return err
}

// pods adds the Pods that use the claim of a PersistentVolume, and reports whether there are any.
func (s *survey) pods(pv *corev1.PersistentVolume) (used bool, err error) {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return false, nil
	}
	key := object.Key{Namespace: ref.Namespace, Name: ref.Name}
	claim, err := s.r.claims.Get(key)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	bound := err == nil && claim.UID == ref.UID && claim.Spec.VolumeName == pv.Name && claim.Status.Phase == corev1.ClaimBound
	pods, err := onNodes(s.r.podsOfClaim.Find(key.String()))
	for _, pod := range pods {
		at := s.place(pod.Spec.NodeName)
		at.holders++
		if bound && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return volumes.Uses(pod, &v, claim) }) {
			at.users, used = append(at.users, pod), true
		}
	}
	return used, err
}

// onNodes returns those of some Pods that are on a node and may still run.
func onNodes(found iter.Seq2[object.Key, cache.Item[*corev1.Pod]]) (pods []*corev1.Pod, err error) {
	for _, item := range found {
		pod, err := item.Object()
		if err != nil {
			return pods, err
		}
		if pod.Spec.NodeName != "" && !volumes.Stopped(pod) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// inline adds what refers to the volume without a PersistentVolume.
func (s *survey) inline() error {
	for _, item := range s.r.attachmentsOf.Find(string(s.volume)) {
		if err := s.attachment(item.Object()); err != nil {
			return err
		}
	}
	attachable, err := s.r.attaches(s.source.driver)
	if err != nil || !attachable {
		return err
	}
	pods, err := onNodes(s.r.podsOfInline.Find(string(s.volume)))
	for _, pod := range pods {
		at := s.place(pod.Spec.NodeName)
		at.holders++
		at.users = append(at.users, pod)
		s.inlineSource(pod)
	}
	return err
}

// inlineSource takes over what a Pod says of the volume.
func (s *survey) inlineSource(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		of, ok := ofInline(&pod.Spec.Volumes[i], pod.Namespace)
		if ok && of.unique == s.volume && s.source.name == string(s.volume) {
			s.source = of
		}
	}
}

// complete fills in the rest of a place.
func (s *survey) complete(at *place) error {
	node, err := s.r.nodes.Get(object.Key{Name: at.node})
	if apierrors.IsNotFound(err) {
		node = nil
	} else if err != nil {
		return err
	}
	at.state, at.reported = stateOf(node, s.volume), reports(node, s.volume)
	slices.SortFunc(at.users, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	where := spot{s.volume, at.node}
	if at.state.exists {
		s.r.world.Update(where, func(m *memory) { m.notInUse = !at.state.inUse })
	}
	at.memory, _ = s.r.world.Actual(where)
	if s.source.driver == "" {
		// Without an attacher, the status of the Node is what is left of an earlier process.
		if at.reported && at.memory.check.stage == checkNone {
			at.memory.attached = true
		}
		at.attached = at.memory.attached
	} else {
		va, err := s.r.attachments.Get(object.Key{Name: attachmentOf(s.volume, at.node)})
		if err == nil {
			at.attachment, at.attached = va, va.Status.Attached && va.DeletionTimestamp == nil
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := s.claimed(at); err != nil {
		return err
	}
	if began := at.memory.detaching; !began.IsZero() && at.attachment == nil {
		s.r.took(&s.source, opDetach, began, nil)
		s.r.world.Update(where, func(m *memory) { m.detaching = time.Time{} })
	}
	s.r.observe(where, at)
	at.attach, at.detach = s.r.world.May(where, opAttach), s.r.world.May(where, opDetach)
	return nil
}

// claimed adds the Pods that hold an attached volume whose PersistentVolume is gone: those at the
// node whose claims name it. The kubelet of the node may have the volume mounted for them.
func (s *survey) claimed(at *place) error {
	if at.attachment == nil || at.attachment.Spec.Source.PersistentVolumeName == nil || len(at.users) > 0 || at.holders > 0 {
		return nil
	}
	pv := *at.attachment.Spec.Source.PersistentVolumeName
	if _, err := s.r.pvs.Get(object.Key{Name: pv}); !apierrors.IsNotFound(err) {
		return err
	}
	for key := range s.r.claimsOfPV.Find(pv) {
		pods, err := onNodes(s.r.podsOfClaim.Find(key.String()))
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.Spec.NodeName == at.node {
				at.holders++
			}
		}
	}
	return nil
}

// observe records in the world what the informers show of a place. They have seen what this
// controller wrote for the volume: the loop has waited for that.
func (r *reconciler) observe(where spot, at *place) {
	if at.exists() {
		r.world.Confirm(where)
	} else {
		r.world.SawNothing(where)
	}
	r.spots.add(where)
}
