// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controlplane/internal/drivers"
	"github.com/setpoint-io/setpoint/object"
)

// AttachLimit is the annotation of a Node that says how many volumes of the driver may be attached
// to it. The scheduler heeds the number. Without it there is no limit.
const AttachLimit = Prefix + "attach-limit"

// newPublisher returns what keeps one CSINode for each simulated Node: the CSINode says that the driver is there. Drivers
// that another client has added to a CSINode stay in it.
func newPublisher(p cache.Provider, recorder *events.Recorder, log *slog.Logger) *drivers.PerNode[*storagev1.CSINode] {
	return drivers.NewPerNode(p, recorder, log, drivers.Published[*storagev1.CSINode]{
		Kind:   "CSINode",
		Name:   func(node string) string { return node },
		NodeOf: func(name string) (string, bool) { return name, true },
		Want: func(node *corev1.Node) (*storagev1.CSINode, []string) {
			limit, problem := limitOfNode(node)
			if problem == "" {
				return csiNodeOf(node, limit), nil
			}
			return csiNodeOf(node, limit), []string{problem}
		},
		Merge: mergeCSINode, Without: withoutDriver, Reason: reasonInvalidKnob, Action: actionAttach,
	})
}

// mergeCSINode returns has with the owner and the driver of want.
func mergeCSINode(has, want *storagev1.CSINode) (next *storagev1.CSINode, differs bool) {
	next = has.DeepCopy()
	next.OwnerReferences = want.OwnerReferences
	ours := want.Spec.Drivers[0]
	if i := driverIn(next); i >= 0 {
		next.Spec.Drivers[i] = ours
	} else {
		next.Spec.Drivers = append(next.Spec.Drivers, ours)
	}
	return next, !apiequality.Semantic.DeepEqual(has, next)
}

// withoutDriver returns has without the driver. rest says whether it has other drivers, and ours whether it had this one.
func withoutDriver(has *storagev1.CSINode) (next *storagev1.CSINode, rest, ours bool) {
	i := driverIn(has)
	if i < 0 {
		return nil, false, false
	}
	next = has.DeepCopy()
	next.Spec.Drivers = slices.Delete(next.Spec.Drivers, i, i+1)
	return next, len(next.Spec.Drivers) > 0, true
}

// driverIn returns the place of the driver in a CSINode, -1 if the CSINode does not have it.
func driverIn(csiNode *storagev1.CSINode) int {
	return slices.IndexFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == Driver })
}

// limitOfNode returns how many volumes may be attached to a Node, nil for any number, and what is
// wrong with the annotation if it cannot be read.
func limitOfNode(node *corev1.Node) (limit *storagev1.VolumeNodeResources, problem string) {
	text, ok := node.Annotations[AttachLimit]
	if !ok {
		return nil, ""
	}
	count, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, fmt.Sprintf("annotation %s is ignored: %q is not a number of volumes", AttachLimit, text)
	}
	return &storagev1.VolumeNodeResources{Count: new(int32(count))}, ""
}

// csiNodeOf returns the CSINode of a simulated Node.
func csiNodeOf(node *corev1.Node, limit *storagev1.VolumeNodeResources) *storagev1.CSINode {
	driver := storagev1.CSINodeDriver{
		Name: Driver, NodeID: node.Name, Allocatable: limit,
		TopologyKeys: []string{corev1.LabelHostname, corev1.LabelTopologyZone},
	}
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{driver}},
	}
}

// expectsNode reports whether a Node is simulated and has no CSINode yet, which the publisher is
// about to make.
func (a *attacher) expectsNode(name string) bool {
	if _, err := a.nodeID(name, nil); err == nil {
		return false
	}
	node, err := a.nodes.Get(object.Key{Name: name})
	return err == nil && drivers.IsSimulated(node) && node.DeletionTimestamp == nil
}

// nodeID returns the driver's name of a Node, as its CSINode has it, or else the VolumeAttachment,
// if one is given.
func (a *attacher) nodeID(name string, attachment *storagev1.VolumeAttachment) (string, error) {
	csiNode, err := a.csiNodes.Get(object.Key{Name: name})
	if err == nil {
		if i := driverIn(csiNode); i >= 0 {
			return csiNode.Spec.Drivers[i].NodeID, nil
		}
		err = fmt.Errorf("CSINode %s does not contain driver %s", name, Driver)
	}
	if attachment != nil {
		if id, ok := attachment.Annotations[nodeIDAnnotation]; ok {
			return id, nil
		}
	}
	return "", err
}
