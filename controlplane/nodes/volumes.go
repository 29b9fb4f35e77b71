// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/workqueue"
)

// reasonNotMounted is the reason of the Event of a Pod whose volumes are waited for.
// Source: k8s.io/kubernetes/pkg/kubelet/events, FailedMountVolume.
const reasonNotMounted = "FailedMount"

// mountPatience is how long a Pod waits for its volumes before an Event says so. A kubelet has
// 2 minutes and 3 seconds (pkg/kubelet/volumemanager, podAttachAndMountTimeout).
const mountPatience = time.Minute

// mount mounts the volumes of a Pod, if they are attached. It returns what the Pod waits for, "" if
// there is nothing, and when to look again.
//
// The protocol is the kubelet's. First the status of the Node says that a volume is in use. A
// volume that the status then names as attached is mounted, and the attach-detach controller
// does not detach it until it is in use no longer.
func (s *simulation) mount(ctx context.Context, state *podState, pod *corev1.Pod) (waits string, wake time.Time) {
	if len(pod.Spec.Volumes) == 0 || pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
		return "", time.Time{}
	}
	m := s.store.mount(state)
	if m.unannounced {
		s.queue.Add(nodeKey(pod.Spec.NodeName))
	}
	waits = m.String()
	if waits == "" {
		return "", time.Time{}
	}
	due := state.memo.first("volumes", time.Now()).Add(mountPatience)
	if time.Now().Before(due) {
		return waits, due
	}
	if state.unmounted != waits {
		state.unmounted = waits
		s.event(ctx, reference("Pod", pod), podEvent{corev1.EventTypeWarning, reasonNotMounted, "Unable to attach or mount volumes: " + waits})
	}
	return waits, time.Time{}
}

// announce writes into the status of a Node which volumes are in use there, if that has changed. It
// returns the Node as it is then.
func (s *simulation) announce(ctx context.Context, state *nodeState, node *corev1.Node) (*corev1.Node, error) {
	inUse, changed := s.store.announce(state)
	if !changed {
		return node, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID},
		"status":   map[string]any{"volumesInUse": inUse},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the volumes in use: %w", err)
	}
	result, err := s.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return node, nil // the Node is gone, and the watch will show it
	}
	if err != nil {
		return nil, fmt.Errorf("writing the volumes in use into the node's status: %w", err)
	}
	result.ManagedFields = nil
	s.store.announced(state, result)
	s.queue.AddWith(workqueue.Add{}, s.store.podsToMount(node.Name)...)
	return result, nil
}

// leaveAttaching sets the annotation on a simulated Node of an earlier run that does not have it.
func (s *simulation) leaveAttaching(ctx context.Context, node *corev1.Node) error {
	if _, ok := node.Annotations[attachable.Annotation]; ok || !simulated(node) {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, attachable.Annotation)
	_, err := s.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating node %s: %w", node.Name, err)
	}
	return nil
}

// mounting is how far the volumes of a Pod are. The lists have the names of the Pod's volumes.
type mounting struct {
	unmounted   []string
	unattached  []string
	unprocessed []string
	problem     string // with the first one that could not be processed

	unannounced bool // the status of the Node does not say yet that all are in use
}

// String says what the Pod waits for, in the kubelet's words, "" for nothing.
// Source: k8s.io/kubernetes/pkg/kubelet/volumemanager, WaitForAttachAndMount.
func (m *mounting) String() string {
	if len(m.unmounted) == 0 {
		return ""
	}
	problem := m.problem
	if problem == "" {
		problem = context.DeadlineExceeded.Error()
	}
	return fmt.Sprintf("unmounted volumes=%v, unattached volumes=%v, failed to process volumes=%v: %s",
		m.unmounted, m.unattached, m.unprocessed, problem)
}

// add adds a volume of a Pod.
func (m *mounting) add(volume string, unique corev1.UniqueVolumeName, problem string, at *nodeState) {
	switch {
	case problem != "":
		m.unprocessed = append(m.unprocessed, volume)
		if m.problem == "" {
			m.problem = problem
		}
	case unique == "":
		return // there is nothing to attach
	default:
		attached := slices.ContainsFunc(at.object.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return v.Name == unique })
		announced := !at.announcing && slices.Contains(at.object.Status.VolumesInUse, unique)
		if !attached {
			m.unattached = append(m.unattached, volume)
		}
		if attached && announced {
			return
		}
		m.unannounced = m.unannounced || !announced
	}
	m.unmounted = append(m.unmounted, volume)
}
