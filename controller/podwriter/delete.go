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
	deleted = make([]bool, len(pods))
	streams := min(len(pods), deletesAtOnce)
	errs := owned.Batch(ctx, streams, func(ctx context.Context, first int) error {
		var failed error
		for i := first; i < len(pods); i += streams {
			err := w.deleteOne(ctx, owner, pods[i], options)
			deleted[i] = err == nil
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

func (w *Writer) deleteOne(ctx context.Context, owner Owner, pod *corev1.Pod, options []client.DeleteOption) error {
	options = append([]client.DeleteOption{client.IfUID(pod.UID)}, options...)
	key := object.KeyOf(pod)
	err := w.beforeDelete(ctx, owner, pod)
	switch {
	case client.AbsentAt(err, key):
		return nil
	case err != nil:
		return fmt.Errorf("preparing the deletion of Pod %s: %w", key, err)
	}
	err = w.pods.Delete(ctx, key, options...)
	switch {
	case err == nil:
		w.normal(owner, SuccessfulDelete, deleting, pod)
		return nil
	case client.AbsentAt(err, key), apierrors.IsConflict(err):
		return nil // it is gone; after a conflict, another Pod has its name
	}
	if ctx.Err() == nil {
		w.warning(owner, FailedDelete, deleting, pod, err)
	}
	return fmt.Errorf("deleting Pod %s: %w", key, err)
}
