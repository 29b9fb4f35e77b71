// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
)

// deletesAtOnce bounds how many deletes of one owner are in flight. One connection to an API
// server carries 100 requests (its default of MaxConcurrentStreams), and the other requests
// of the process need some of them.
const deletesAtOnce = 64

// Delete deletes Pods of an owner, each by its UID. deleted reports for each Pod whether it is
// deleted or was gone before. The error is the first failure; the other Pods are deleted
// nevertheless. Each delete has the options, such as a grace period.
func (w *Writer) Delete(ctx context.Context, owner Owner, pods []*corev1.Pod, options ...client.DeleteOption) (deleted []bool, err error) {
	const conflictIsGone = true // only the UID can be another: another Pod has the name
	return deleteAll(ctx, pods, func(ctx context.Context, pod *corev1.Pod) (bool, error) {
		return w.deleteOne(ctx, owner, pod, conflictIsGone, options)
	})
}

// DeleteUnchanged is Delete for Pods that must be as they were read: a Pod that was not ready, say,
// and that nothing waits for. One that has changed since is not deleted, which is no failure. The
// caller asks for another run, because its watch may ignore the change.
func (w *Writer) DeleteUnchanged(ctx context.Context, owner Owner, pods []*corev1.Pod) (deleted []bool, err error) {
	const conflictIsGone = false
	return deleteAll(ctx, pods, func(ctx context.Context, pod *corev1.Pod) (bool, error) {
		return w.deleteOne(ctx, owner, pod, conflictIsGone, []client.DeleteOption{client.IfVersion(object.Version(pod.ResourceVersion))})
	})
}

// deleteAll calls one for each Pod, for several at a time.
func deleteAll(ctx context.Context, pods []*corev1.Pod, one func(context.Context, *corev1.Pod) (bool, error)) (deleted []bool, err error) {
	deleted = make([]bool, len(pods))
	streams := min(len(pods), deletesAtOnce)
	errs := owned.Batch(ctx, streams, func(ctx context.Context, first int) error {
		var failed error
		for i := first; i < len(pods); i += streams {
			var err error
			deleted[i], err = one(ctx, pods[i])
			if failed == nil {
				failed = err
			}
		}
		return failed
	})
	if len(errs) > 0 {
		return deleted, errs[0]
	}
	return deleted, nil
}

// deleteOne deletes a Pod, and reports whether it is gone. A delete whose preconditions do not hold
// is no failure; conflictIsGone is what deleteOne then reports. A conflict while the Pod is prepared
// is a failure: the Pod is still there.
func (w *Writer) deleteOne(ctx context.Context, owner Owner, pod *corev1.Pod, conflictIsGone bool, options []client.DeleteOption) (bool, error) {
	options = append([]client.DeleteOption{client.IfUID(pod.UID)}, options...)
	key := object.KeyOf(pod)
	err := w.beforeDelete(ctx, owner, pod)
	switch {
	case client.AbsentAt(err, key):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("preparing the deletion of Pod %s: %w", key, err)
	}
	err = w.pods.Delete(ctx, key, options...)
	switch {
	case err == nil:
		w.normal(owner, SuccessfulDelete, deleting, pod)
		return true, nil
	case client.AbsentAt(err, key):
		return true, nil
	case apierrors.IsConflict(err):
		return conflictIsGone, nil
	case ctx.Err() == nil:
		w.warning(owner, FailedDelete, deleting, pod, err)
	}
	return false, fmt.Errorf("deleting Pod %s: %w", key, err)
}
