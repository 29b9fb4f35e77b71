// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/worlds"
	"github.com/setpoint-io/setpoint/internal/nodestate"
)

// view is all that is decided from: one volume, and each node that it concerns.
type view struct {
	source
	places []place // in the order of the names of nodes
	now    time.Time

	unmountWait  time.Duration // see Options
	forceTimeout bool          // a node that is not healthy loses its volumes after unmountWait
}

// place is a volume at a node.
type place struct {
	node  string
	state nodeState

	// attachment is the VolumeAttachment, nil if there is none. Volumes of plugins without an
	// attacher have none.
	attachment *storagev1.VolumeAttachment
	attached   bool // the attacher says so, or there is no attacher and the volume has been attached
	reported   bool // the status of the Node says so, in volumesAttached

	// users are the Pods for which the volume is to be at the node, in the order of their
	// creation. holders are Pods that refer to its claim and may still run, whatever has become
	// of the claim: the volume is not detached from under them.
	users   []*corev1.Pod
	holders int

	memory memory
	attach worlds.Turn // of the operation attach
	detach worlds.Turn // of the operation detach
}

// exists reports whether the volume is at the node, or may be.
func (p *place) exists() bool { return p.attachment != nil || p.attached }

// unreported reports whether the status of the Node does not name the volume, which is attached.
func (p *place) unreported() bool { return p.attached && !p.reported }

// wanted reports whether the volume is to stay at the node.
func (p *place) wanted() bool { return len(p.users) > 0 || p.holders > 0 }

// nodeState is what matters of a Node.
type nodeState struct {
	exists       bool
	managed      bool // its kubelet leaves attaching to this controller
	ready        bool
	outOfService bool
	inUse        bool // its kubelet has the volume in use: it is mounted, or is going to be
}

// stateOf returns what matters of a Node, which may be nil, for a volume. For a Node that does not
// exist, inUse is false.
func stateOf(node *corev1.Node, volume corev1.UniqueVolumeName) nodeState {
	if node == nil {
		return nodeState{}
	}
	_, managed := node.Annotations[Annotation]
	s := nodeState{exists: true, managed: managed, ready: nodestate.Ready(node)}
	for i := range node.Spec.Taints {
		s.outOfService = s.outOfService || node.Spec.Taints[i].Key == corev1.TaintNodeOutOfService
	}
	for _, name := range node.Status.VolumesInUse {
		s.inUse = s.inUse || name == volume
	}
	return s
}

// reports reports whether the status of a Node says that a volume is attached.
func reports(node *corev1.Node, volume corev1.UniqueVolumeName) bool {
	if node == nil {
		return false
	}
	for i := range node.Status.VolumesAttached {
		if node.Status.VolumesAttached[i].Name == volume {
			return true
		}
	}
	return false
}

// memory is what is remembered of a place while the process runs. A process that starts assumes
// the worst: that each volume is in use, and that the wait for the kubelet begins again.
type memory struct {
	// attached is set for a volume of a plugin without an attacher that has been attached.
	attached bool

	// failed is set after attaching has failed, until the volume is attached. The driver tries again
	// by itself, so that it may succeed while this controller waits.
	failed bool

	// wanted is set while something needs the volume at the node. Neither wanted nor unwanted is set
	// before the first run for the volume.
	wanted bool

	// unreported is set while the volume is attached and the status of the Node does not say so.
	unreported bool

	// unwanted is since when nothing needs the volume at the node. It is zero while something does.
	unwanted time.Time

	// notInUse is set when the status of the Node was last seen to say so. It counts when the Node
	// is gone.
	notInUse bool

	// detaching is since when the driver has been detaching the volume; zero if it is not.
	detaching time.Time

	// check is how far the check before a detach is.
	check check

	// said has the Event about a wait that was recorded last for each Pod, so that each is recorded
	// once. The map is never changed.
	said map[types.UID]string
}

// check is how far the check before a detach is: first the entry of the volume is taken out of
// the status of the Node, so that its kubelet does not begin to mount the volume. Then the Node, as
// the server has it after that, must not have the volume in use.
type check struct {
	stage checkStage
	force force // why the volume is detached although it may be in use
}

type checkStage int

const (
	checkNone    checkStage = iota
	checkAsked              // the loop over nodes has to check
	checkPassed             // the entry is gone, and the volume can be detached
	checkRefused            // the kubelet has the volume in use
)

// force is why a volume may be detached although its node has it in use.
type force string

const (
	forceNone         force = ""
	forceTimeout      force = "the node is not ready, and its kubelet has not unmounted the volume in time"
	forceOutOfService force = "the node is out of service"
)

// forced returns why a volume may be detached from a node although it is in use there. expired
// says that the wait for the kubelet is over and that waiting for it has an end.
func (s nodeState) forced(expired bool) force {
	switch {
	case s.outOfService:
		return forceOutOfService
	case expired && !s.ready:
		return forceTimeout
	}
	return forceNone
}
