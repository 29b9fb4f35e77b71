// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupprotection

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Where a Pod names its group, and says in which phase it is.
// Source: k8s.io/api/core/v1/generated.proto.
var (
	groupName = wire.Path{Names: "spec.schedulingGroup.podGroupName", Numbers: [4]int32{2, 43, 1}}
	phase     = wire.Path{Names: "status.phase", Numbers: [4]int32{3, 1}}
)

// membership returns the group that a Pod names, and whether the Pod has not ended. The name is
// empty for a Pod without a group. It does not decode the Pod.
func membership(pod cache.Item[*corev1.Pod]) (group object.Key, open bool, err error) {
	name, err := pod.Text(groupName)
	if err != nil || name == "" {
		return object.Key{}, false, err
	}
	in, err := pod.Text(phase)
	return object.Key{Namespace: pod.Key().Namespace, Name: name}, !podstate.Final(corev1.PodPhase(in)), err
}

// groupOf is a mapping from a Pod to its group.
func groupOf(pod cache.Item[*corev1.Pod], add func(object.Key)) {
	group, _, err := membership(pod)
	if err == nil && group.Name != "" { // the index has logged a Pod that cannot be read
		add(group)
	}
}

// leaves chooses the events by which a Pod of a group has ended or is gone. No other event can end
// the protection of a group.
func leaves(e cache.Event[*corev1.Pod]) bool {
	if !e.Old.Exists() {
		return false
	}
	group, open, err := membership(e.Old)
	if err != nil || !open || group.Name == "" {
		return err != nil
	}
	if !e.New.Exists() || e.Kind == cache.Replaced {
		return true
	}
	_, open, err = membership(e.New)
	return err != nil || !open
}
