// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/object"
)

// reportPause is the least time between two writes of the status of a Node. Of 20 Pods that come to a Node at once, a
// driver attaches one volume after the other. A kubelet that waits for its volumes looks at the status no more often than that.
// Source: k8s.io/kubernetes/pkg/util/goroutinemap/exponentialbackoff, initialDurationBeforeRetry.
const reportPause = 500 * time.Millisecond

// reportWorkers is how many Nodes are reported to at a time. Where the server is slow, Nodes wait for their turn, and what is
// attached meanwhile is in the same write. Upstream writes one after the other.
const reportWorkers = 2

// report writes which volumes are attached into the status of one Node, and carries out the checks
// that detaches wait for. The kubelet mounts no volume that the status does not name, and says
// before which volumes it is going to mount. So if the status does not name a volume, and the Node
// as the server has it after that does not have it in use, the kubelet will not mount it.
//
// All volumes of a Node share one write and one check, and those that are attached within reportPause of a write
// share the next.
func (r *reconciler) report(ctx context.Context, req controller.RequestOf[string]) (controller.Result, error) {
	now := time.Now()
	if left := r.reports.Left(req.Key, now); left > 0 {
		return controller.Result{After: left}, nil
	}
	asked := r.asked(req.Key) // before the list is made, which then does not have them
	key := object.Key{Name: req.Key}
	node, err := r.nodes.Get(key)
	switch {
	case apierrors.IsNotFound(err):
		node = nil
		r.reports.Forget(req.Key)
	case err != nil:
		return controller.Result{}, err
	}
	if node != nil {
		if list := r.attachedTo(node); !slices.Equal(list, node.Status.VolumesAttached) {
			if node, err = r.writeAttached(ctx, node, list); err != nil {
				return controller.Result{}, err
			}
			r.reports.Wrote(req.Key, now)
			r.answer(req.Key, asked, node)
			return controller.Result{}, nil // its event starts the next run
		}
		r.attendReported(node)
	}
	if len(asked) == 0 {
		return controller.Result{}, nil
	}
	live, err := r.nodes.Server().Get(ctx, key)
	switch {
	case client.AbsentAt(err, key):
		live = nil
	case err != nil:
		return controller.Result{}, fmt.Errorf("reading node %s before a detach: %w", req.Key, err)
	}
	if missing := r.answer(req.Key, asked, live); missing {
		return controller.Result{}, errors.New("the cache does not show the status that the server has")
	}
	return controller.Result{}, nil
}

// attendReported requests a run for the volumes that the status names now. The last one has stated that it does not.
func (r *reconciler) attendReported(node *corev1.Node) {
	for i := range node.Status.VolumesAttached {
		volume := node.Status.VolumesAttached[i].Name
		if m, _ := r.world.Actual(spot{volume, node.Name}); m.unreported {
			r.attendVolume(volume)
		}
	}
}

// asked returns the volumes at a node that wait for a check.
func (r *reconciler) asked(node string) (all []corev1.UniqueVolumeName) {
	r.spots.at(node, func(volume corev1.UniqueVolumeName) {
		if m, _ := r.world.Actual(spot{volume, node}); m.check.stage == checkAsked {
			all = append(all, volume)
		}
	})
	return all
}

// attachedTo returns what the status of a Node has to name: volumes that are attached and are not
// to be detached. A volume that the status does not name is added only if something needs it there.
// Entries that stay keep their place, and so do those of other plugins.
func (r *reconciler) attachedTo(node *corev1.Node) []corev1.AttachedVolume {
	attached := r.attachedVolumes(node)
	list := []corev1.AttachedVolume{}
	for _, entry := range node.Status.VolumesAttached {
		m, _ := r.world.Actual(spot{entry.Name, node.Name})
		// Of a plugin without an attacher, the entry is what an earlier process has left.
		is := attached[entry.Name] || attachable.OfNoAttacher(entry.Name)
		if is && m.check.stage == checkNone || !ours(entry.Name) {
			list = append(list, entry)
		}
		delete(attached, entry.Name)
	}
	for _, volume := range slices.Sorted(maps.Keys(attached)) {
		if m, _ := r.world.Actual(spot{volume, node.Name}); m.wanted && m.check.stage == checkNone {
			list = append(list, corev1.AttachedVolume{Name: volume})
		}
	}
	return list
}

// attachedVolumes returns the volumes that are attached to a node. The name of an attachment is a hash of its volume
// and node, so that those of volumes that the world remembers are known by their names. In a profile of 20 volumes at
// each Node, a tenth of the CPU went into decoding all attachments of a Node, and their PersistentVolumes, for each report.
func (r *reconciler) attachedVolumes(node *corev1.Node) map[corev1.UniqueVolumeName]bool {
	attached := map[corev1.UniqueVolumeName]bool{}
	known := map[string]corev1.UniqueVolumeName{} // by the names of their attachments
	r.spots.at(node.Name, func(volume corev1.UniqueVolumeName) {
		if m, _ := r.world.Actual(spot{volume, node.Name}); m.attached {
			attached[volume] = true
		}
		known[attachmentOf(volume, node.Name)] = volume
	})
	for _, item := range r.attachedOn.Find(node.Name) {
		if volume, ok := known[item.Key().Name]; ok {
			attached[volume] = true
			continue
		}
		va, err := item.Object()
		if err != nil {
			continue
		}
		if volume, ok := r.volumeOf(va); ok {
			attached[volume] = true
		}
	}
	return attached
}

// writeAttached writes the list into the status of a Node, and returns the Node that the server
// has after that.
func (r *reconciler) writeAttached(ctx context.Context, node *corev1.Node, list []corev1.AttachedVolume) (*corev1.Node, error) {
	patch, err := client.MergePatch(map[string]any{
		"metadata": map[string]any{"uid": node.UID},
		"status":   map[string]any{"volumesAttached": list},
	})
	if err != nil {
		return nil, err
	}
	written, err := r.nodes.Sub("status").Patch(ctx, object.KeyOf(node), patch)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("writing the attached volumes into the status of node %s: %w", node.Name, err)
	}
	return written, nil
}

// answer ends checks by the Node that the server has, nil if it has none. It reports whether the
// status still names one of the volumes; its check goes on then.
func (r *reconciler) answer(node string, asked []corev1.UniqueVolumeName, live *corev1.Node) (missing bool) {
	for _, volume := range asked {
		if reports(live, volume) {
			missing = true
			continue
		}
		state := stateOf(live, volume)
		r.world.Update(spot{volume, node}, func(m *memory) {
			if m.check.stage != checkAsked {
				return // it was called off
			}
			m.check.stage = checkPassed
			// What the informer showed of the Node may be out of date.
			if state.inUse && state.forced(m.check.force == forceTimeout) == forceNone {
				m.check.stage = checkRefused
			}
		})
		r.attendVolume(volume)
	}
	return missing
}
