// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"cmp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// inline are the kinds of volumes that stand in a Pod itself and that [attachable.OfInline] knows.
// Source: k8s.io/api/core/v1/generated.proto.
var inline = []wire.Path{
	{Names: "spec.volumes.gcePersistentDisk", Numbers: [4]int32{2, 1, 2, 3}},
	{Names: "spec.volumes.awsElasticBlockStore", Numbers: [4]int32{2, 1, 2, 4}},
	{Names: "spec.volumes.iscsi", Numbers: [4]int32{2, 1, 2, 8}},
	{Names: "spec.volumes.cinder", Numbers: [4]int32{2, 1, 2, 13}},
	{Names: "spec.volumes.fc", Numbers: [4]int32{2, 1, 2, 17}},
	{Names: "spec.volumes.azureFile", Numbers: [4]int32{2, 1, 2, 18}},
	{Names: "spec.volumes.vsphereVolume", Numbers: [4]int32{2, 1, 2, 20}},
	{Names: "spec.volumes.azureDisk", Numbers: [4]int32{2, 1, 2, 22}},
	{Names: "spec.volumes.portworxVolume", Numbers: [4]int32{2, 1, 2, 24}},
}

// needed are the kinds of volumes that may have to be attached.
var needed = slices.Concat(volumes.Claimed, inline)

// mayNeed reports whether a Pod may need volumes to be attached. It is false only if the Pod certainly needs none: then it need not
// be decoded.
func mayNeed(pod cache.Item[*corev1.Pod]) bool {
	return pod.MayHave(needed...)
}

// inlineVolumes returns the unique names of the volumes that stand in a Pod itself.
func inlineVolumes(item cache.Item[*corev1.Pod]) (names []string, err error) {
	if !item.MayHave(inline...) {
		return nil, nil
	}
	pod, err := item.Object()
	if err != nil {
		return nil, err
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if volumes.ClaimName(pod, v) != "" {
			continue
		}
		if s, ok := ofInline(v, pod.Namespace); ok {
			names = append(names, string(s.unique))
		}
	}
	return names, nil
}

func nameOfPV(item cache.Item[*corev1.PersistentVolumeClaim]) ([]string, error) {
	claim, err := item.Object()
	if err != nil || claim.Spec.VolumeName == "" {
		return nil, err
	}
	return []string{claim.Spec.VolumeName}, nil
}

func uniqueNames(item cache.Item[*corev1.PersistentVolume]) ([]string, error) {
	pv, err := item.Object()
	if err != nil {
		return nil, err
	}
	if s, ok := ofVolume(pv); ok {
		return []string{string(s.unique)}, nil
	}
	return nil, nil
}

// namedVolumes returns the unique names in the status of a Node.
func namedVolumes(item cache.Item[*corev1.Node]) (names []string, err error) {
	node, err := item.Object()
	if err != nil {
		return nil, err
	}
	for i := range node.Status.VolumesAttached {
		names = append(names, string(node.Status.VolumesAttached[i].Name))
	}
	for _, name := range node.Status.VolumesInUse {
		names = append(names, string(name))
	}
	return names, nil
}

// sourceOfAttachment returns what a VolumeAttachment is of: the name of a PersistentVolume, or the
// unique name of a volume that stands in a Pod. A unique name has a slash and no PersistentVolume
// has one.
func sourceOfAttachment(item cache.Item[*storagev1.VolumeAttachment]) ([]string, error) {
	va, err := item.Object()
	if err != nil {
		return nil, err
	}
	switch source := va.Spec.Source; {
	case source.PersistentVolumeName != nil:
		return []string{*source.PersistentVolumeName}, nil
	case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil:
		csi := source.InlineVolumeSpec.CSI
		return []string{string(attachable.UniqueCSI(csi.Driver, csi.VolumeHandle))}, nil
	}
	return nil, nil
}

func nodesOfAttachment(item cache.Item[*storagev1.VolumeAttachment]) ([]string, error) {
	va, err := item.Object()
	if err != nil {
		return nil, err
	}
	return []string{va.Spec.NodeName}, nil
}

// nodesOfAttached returns the node of an attachment that is attached and stays.
func nodesOfAttached(item cache.Item[*storagev1.VolumeAttachment]) ([]string, error) {
	va, err := item.Object()
	if err != nil || !va.Status.Attached || va.DeletionTimestamp != nil {
		return nil, err
	}
	return []string{va.Spec.NodeName}, nil
}

// volumeOf returns the unique name of the volume of a VolumeAttachment. It reports false for one
// that this controller has not made: the name of an attachment is a hash of its volume and node.
// If the PersistentVolume is gone, the status of the Node or the world may still name the volume.
func (r *reconciler) volumeOf(va *storagev1.VolumeAttachment) (corev1.UniqueVolumeName, bool) {
	var unique corev1.UniqueVolumeName
	switch source := va.Spec.Source; {
	case source.PersistentVolumeName != nil:
		r.addPV(*source.PersistentVolumeName, func(name corev1.UniqueVolumeName) { unique = name })
	case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil:
		unique = attachable.UniqueCSI(source.InlineVolumeSpec.CSI.Driver, source.InlineVolumeSpec.CSI.VolumeHandle)
	}
	if unique == "" {
		unique = cmp.Or(r.volumeInStatus(va), r.volumeInWorld(va))
	}
	return unique, unique != "" && attachmentOf(unique, va.Spec.NodeName) == va.Name
}

// volumeInStatus searches the volume of a VolumeAttachment in the status of its Node.
func (r *reconciler) volumeInStatus(va *storagev1.VolumeAttachment) corev1.UniqueVolumeName {
	node, err := r.nodes.Get(object.Key{Name: va.Spec.NodeName})
	if err != nil {
		return ""
	}
	for i := range node.Status.VolumesAttached {
		if name := node.Status.VolumesAttached[i].Name; attachmentOf(name, node.Name) == va.Name {
			return name
		}
	}
	for _, name := range node.Status.VolumesInUse {
		if attachmentOf(name, node.Name) == va.Name {
			return name
		}
	}
	return ""
}

// volumeInWorld searches the volume of a VolumeAttachment in what is remembered of its node.
func (r *reconciler) volumeInWorld(va *storagev1.VolumeAttachment) (found corev1.UniqueVolumeName) {
	r.spots.at(va.Spec.NodeName, func(name corev1.UniqueVolumeName) {
		if attachmentOf(name, va.Spec.NodeName) == va.Name {
			found = name
		}
	})
	return found
}

// spots are the keys of a world, by volume and by node. It is safe for concurrent use.
type spots struct {
	mu      sync.Mutex
	nodesOf map[corev1.UniqueVolumeName]map[string]bool
	atNode  map[string]map[corev1.UniqueVolumeName]bool
}

func (s *spots) add(p spot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodesOf == nil {
		s.nodesOf, s.atNode = map[corev1.UniqueVolumeName]map[string]bool{}, map[string]map[corev1.UniqueVolumeName]bool{}
	}
	if s.nodesOf[p.volume] == nil {
		s.nodesOf[p.volume] = map[string]bool{}
	}
	if s.atNode[p.node] == nil {
		s.atNode[p.node] = map[corev1.UniqueVolumeName]bool{}
	}
	s.nodesOf[p.volume][p.node], s.atNode[p.node][p.volume] = true, true
}

func (s *spots) remove(p spot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodesOf[p.volume], p.node)
	if len(s.nodesOf[p.volume]) == 0 {
		delete(s.nodesOf, p.volume)
	}
	delete(s.atNode[p.node], p.volume)
	if len(s.atNode[p.node]) == 0 {
		delete(s.atNode, p.node)
	}
}

// of calls add with the nodes of a volume.
func (s *spots) of(volume corev1.UniqueVolumeName, add func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for node := range s.nodesOf[volume] {
		add(node)
	}
}

// at calls add with the volumes of a node. add must not call the spots.
func (s *spots) at(node string, add func(corev1.UniqueVolumeName)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for volume := range s.atNode[node] {
		add(volume)
	}
}
